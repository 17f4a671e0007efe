// Shows token rows in the form of the interface. Absent values are left out, except the issuing country of a card,
// which is shown as unknown. No record holds a PAN.
import { dateOf } from '../clock.ts'
import type { BinRange } from './bin.ts'
import { isAnalytic, isReusable } from './card-fields.ts'
import { UNKNOWN_COUNTRY } from './country.ts'
import { isCurrency } from './currency.ts'
import { renderScheme, type SchemeRecord, type ShownScheme } from './scheme.ts'
import { reuseTokenOf, type TokenRow, type TokenStatus } from './token.ts'

interface BinDetails {
  bin?: string
  brand?: string
  issuer_country?: string
  issuer_name?: string
  last_four?: string
  type?: 'DEBIT' | 'CREDIT'
  variant?: string
}

interface PatchRecord {
  bin?: string
  expiry_month?: number
  expiry_year?: number
  last_four?: string
  card_holder_name?: string
  card_holder_email?: string
  issuer_country?: string
  currency?: string
  bin_details?: BinDetails
  updated_at: string
  created_at: string
  token_expiry_date?: string
  token_status: TokenStatus
  scheme_token?: SchemeRecord
}

interface PutRecord extends Omit<PatchRecord, 'card_holder_email'> {
  reuse_token?: string
  analytics_token?: string
  reuse_token_type: string
  token_scope: string
}

interface GetRecord extends PutRecord {
  brand?: string
  issuer_name?: string
  type?: 'DEBIT' | 'CREDIT'
  variant?: string
}

/** The answer of PUT. `range`: the row's BIN range; `scheme`: its scheme token. */
export function renderPut(
  row: TokenRow,
  range: BinRange | undefined,
  scheme?: ShownScheme,
): PutRecord & Record<string, unknown> {
  return compact({
    ...namesOf(row),
    ...cardOf(row, range),
    currency: currencyOf(range, 'current'),
    ...datesOf(row),
    scheme_token: scheme && renderScheme(scheme, 'VALID'),
  })
}

export function renderGet(
  row: TokenRow,
  range: BinRange | undefined,
  scheme?: ShownScheme,
): GetRecord & Record<string, unknown> {
  return compact({
    ...namesOf(row),
    ...cardOf(row, range),
    brand: row.brand ?? undefined,
    issuer_name: range?.issuerName,
    type: range?.type,
    variant: range?.variant,
    currency: currencyOf(range, 'with-legacy'),
    ...datesOf(row),
    scheme_token: scheme && renderScheme(scheme, 'VALID'),
  })
}

export function renderPatch(
  row: TokenRow,
  range: BinRange | undefined,
  scheme?: ShownScheme,
): PatchRecord & Record<string, unknown> {
  return compact({
    ...cardOf(row, range),
    card_holder_email: row.cardHolderEmail ?? undefined,
    currency: currencyOf(range, 'current'),
    ...datesOf(row),
    scheme_token: scheme && renderScheme(scheme, 'ACTIVE'),
  })
}

/** The answer of a `token-lifecycle` job. Over HTTP the answer is 204 without a body. */
export function renderLifecycle(row: Pick<TokenRow, 'tokenId' | 'thirdParty' | 'status'>) {
  return { id: reuseTokenOf(row), token_status: row.status }
}

/** The reuse token as callers may see it: undefined for a token that is for analytics only. */
export function shownReuseToken(row: Pick<TokenRow, 'tokenId' | 'thirdParty' | 'tokenType'>): string | undefined {
  return isReusable(row.tokenType) ? reuseTokenOf(row) : undefined
}

function namesOf(row: TokenRow) {
  return {
    reuse_token: shownReuseToken(row),
    analytics_token: isAnalytic(row.tokenType) ? (row.analyticsToken ?? undefined) : undefined,
    reuse_token_type: row.thirdParty?.type ?? 'INTERNAL',
    token_scope: row.tokenScope,
  }
}

function cardOf(row: TokenRow, range: BinRange | undefined) {
  const bin = row.bin ?? undefined
  const lastFour = row.lastFour ?? undefined
  const issuerCountry = bin === undefined ? undefined : (range?.issuerCountry ?? UNKNOWN_COUNTRY)
  return {
    bin,
    expiry_month: row.expiryMonth ?? undefined,
    expiry_year: row.expiryYear ?? undefined,
    last_four: lastFour,
    card_holder_name: row.cardHolderName ?? undefined,
    issuer_country: issuerCountry,
    bin_details:
      bin === undefined
        ? undefined
        : compact({
            bin,
            brand: row.brand ?? undefined,
            issuer_country: issuerCountry,
            issuer_name: range?.issuerName,
            last_four: lastFour,
            type: range?.type,
            variant: range?.variant,
          }),
  }
}

function currencyOf(range: BinRange | undefined, list: 'current' | 'with-legacy'): string | undefined {
  return range?.currency !== undefined && isCurrency(range.currency, list) ? range.currency : undefined
}

function datesOf(row: TokenRow) {
  return {
    updated_at: dateOf(row.updatedAt),
    created_at: dateOf(row.createdAt),
    token_expiry_date: row.tokenExpiryDate ?? undefined,
    token_status: row.status,
  }
}

type Compact<T> = { [K in keyof T as undefined extends T[K] ? never : K]: T[K] } & {
  [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>
}

function compact<T extends object>(record: T): Compact<T> {
  return Object.fromEntries(Object.entries(record).filter(([, value]) => value !== undefined)) as Compact<T>
}
