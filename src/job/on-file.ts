// `on_file`: the owner of a card, and data that must be kept with the card. A member of requests and records that
// create or update a token. It is sent only to workers that know it (`features.ts`).
import { z } from 'zod'
import { AGREED_BY, AGREEMENTS, type Claim, type OwnerId } from '../token/on-file.ts'
import { hasDigits, PAN_LENGTH } from '../token/pan.ts'
import { date, isPrintable, text } from './envelope/text.ts'

const PROVIDER = /^[A-Za-z0-9._-]{1,64}$/
const COUNTRY = /^[A-Z]{2}$/
const CURRENCY = /^[A-Z]{3}$/
/** The most characters of each text. */
const LENGTHS = {
  provider: 64,
  provider_account: 128,
  customer_id: 128,
  card_id: 128,
  cardholder_name: 256,
  network_transaction_id: 64,
  transaction_link_id: 64,
} as const
const ADDRESS_LENGTHS = {
  line1: 256,
  line2: 256,
  city: 128,
  state: 128,
  postal_code: 32,
} as const
/** The most network transaction ids. */
const IDS_MAX = 50

/** The members that name an owner within a token scope. */
export const ownerFields = {
  provider: z.string().regex(PROVIDER),
  provider_account: text(1, LENGTHS.provider_account).optional(),
  customer_id: text(1, LENGTHS.customer_id).optional(),
  card_id: text(1, LENGTHS.card_id),
}

const BillingAddressRequest = z.strictObject({
  line1: text(1, ADDRESS_LENGTHS.line1).optional(),
  line2: text(1, ADDRESS_LENGTHS.line2).optional(),
  city: text(1, ADDRESS_LENGTHS.city).optional(),
  state: text(1, ADDRESS_LENGTHS.state).optional(),
  postal_code: text(1, ADDRESS_LENGTHS.postal_code).optional(),
  country: z.string().regex(COUNTRY).optional(),
})

export const OnFileRequest = z.strictObject({
  ...ownerFields,
  cardholder_name: text(1, LENGTHS.cardholder_name).optional(),
  network_transaction_ids: z.array(text(1, LENGTHS.network_transaction_id)).min(1).max(IDS_MAX).optional(),
  network_transaction_id: text(1, LENGTHS.network_transaction_id).optional(),
  transaction_link_id: text(1, LENGTHS.transaction_link_id).optional(),
  first_amount: z.int().min(0).optional(),
  first_currency: z.string().regex(CURRENCY).optional(),
  first_date: date().optional(),
  agreement: z.enum(AGREEMENTS).optional(),
  agreed_by: z.enum(AGREED_BY).optional(),
  agreed_on: date().optional(),
  is_default: z.boolean().optional(),
})
export type OnFileRequest = z.infer<typeof OnFileRequest>

/** The member of a record, which may also have a billing address, because records are in an encrypted block. */
export const OnFileRecord = OnFileRequest.extend({ billing_address: BillingAddressRequest.optional() })
export type OnFileRecord = z.infer<typeof OnFileRecord>

const DATE = z.regexes.date

const USUAL_TEXTS: ReadonlyMap<string, number> = new Map(Object.entries(LENGTHS))
const USUAL_ADDRESS: ReadonlyMap<string, number> = new Map(Object.entries(ADDRESS_LENGTHS))

type Judge = (value: unknown) => boolean
const isOneOf =
  (words: readonly string[]): Judge =>
  value =>
    words.includes(value as string)
const isDate: Judge = value => typeof value === 'string' && DATE.test(value)

/** The other members, which hold no text that could be a card number. */
const USUAL_OTHERS: ReadonlyMap<string, Judge> = new Map([
  ['first_currency', value => typeof value === 'string' && CURRENCY.test(value)],
  ['first_date', isDate],
  ['agreed_on', isDate],
  ['agreement', isOneOf(AGREEMENTS)],
  ['agreed_by', isOneOf(AGREED_BY)],
  ['is_default', value => typeof value === 'boolean'],
])

interface Usual {
  onFile: OnFileRecord
  /** The texts with enough digits for a card number. */
  numbers: readonly string[]
  /** Those of the billing address. */
  addressNumbers: readonly string[]
}

const NO_TEXTS: readonly string[] = []

/**
 * The value if it passes the schema: a fast check that most records pass. Undefined for any other value, which may still be
 * valid.
 */
export function readUsualOnFile(value: unknown): Usual | undefined {
  const members = membersOf(value)
  if (!members) return undefined
  let numbers = NO_TEXTS
  let addressNumbers = NO_TEXTS
  for (const name in members) {
    const member = members[name]
    const found = name === 'network_transaction_ids' ? judgeList(member) : judgeMember(name, member)
    if (found === undefined) return undefined
    if (!found) continue
    const texts = textsIn(member).filter(text => hasDigits(text, PAN_LENGTH.least))
    if (name === 'billing_address') addressNumbers = texts
    else numbers = [...numbers, ...texts]
  }
  const { provider, card_id: cardId } = members
  const isOwner = typeof provider === 'string' && PROVIDER.test(provider) && cardId !== undefined
  return isOwner ? { onFile: value as OnFileRecord, numbers, addressNumbers } : undefined
}

/** Whether the member has enough digits for a card number; undefined if it isn't usual. */
function judgeMember(name: string, member: unknown): boolean | undefined {
  const most = USUAL_TEXTS.get(name)
  if (most !== undefined) return judgeText(member, most)
  if (name === 'first_amount')
    return Number.isSafeInteger(member) && (member as number) >= 0 ? (member as number) >= 1e11 : undefined
  if (name === 'billing_address') return judgeAddress(member)
  return USUAL_OTHERS.get(name)?.(member) ? false : undefined
}

function judgeText(text: unknown, most: number): boolean | undefined {
  if (typeof text !== 'string' || text.length === 0 || text.length > most || !isPrintable(text)) return undefined
  return hasDigits(text, PAN_LENGTH.least)
}

function judgeList(list: unknown): boolean | undefined {
  if (!Array.isArray(list) || list.length === 0 || list.length > IDS_MAX) return undefined
  let hasNumber = false
  for (const text of list) {
    const found = judgeText(text, LENGTHS.network_transaction_id)
    if (found === undefined) return undefined
    hasNumber ||= found
  }
  return hasNumber
}

function judgeAddress(address: unknown): boolean | undefined {
  const members = membersOf(address)
  if (!members) return undefined
  let hasNumber = false
  for (const name in members) {
    const member = members[name]
    const isCountry = name === 'country' && typeof member === 'string' && COUNTRY.test(member)
    const found = isCountry ? false : judgeText(member, USUAL_ADDRESS.get(name) ?? 0)
    if (found === undefined) return undefined
    hasNumber ||= found
  }
  return hasNumber
}

function membersOf(value: unknown): Record<string, unknown> | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : undefined
}

export type OwnerRequest = Pick<OnFileRequest, 'provider' | 'provider_account' | 'customer_id' | 'card_id'>

export function ownerOf(request: OwnerRequest, tokenScope: string): OwnerId {
  const { provider, provider_account: providerAccount = '', customer_id: customerId = '', card_id: cardId } = request
  return { tokenScope, provider, providerAccount, customerId, cardId }
}

/** The claim that the member makes. `keepBilling`: the scope keeps billing addresses; otherwise they are left out. */
export function claimOf(request: OnFileRecord, scope: { tokenScope: string; keepBilling: boolean }): Claim {
  const { provider: _, provider_account: __, customer_id: ___, card_id: ____, billing_address, ...onFile } = request
  const address = scope.keepBilling && billing_address ? { billing_address } : {}
  return { owner: ownerOf(request, scope.tokenScope), onFile: { ...onFile, ...address } }
}

/** A bound above the levels that the schema has: a member may hold a list or an address. */
const DEPTH_MAX = 4

/**
 * Whether `isLike` holds for a text or number in the member or in a claim. True for a value that is nested deeper than any
 * that the schema lets pass.
 */
export function someText(value: unknown, isLike: (text: string) => boolean, depth = 0): boolean {
  if (typeof value === 'string') return isLike(value)
  if (typeof value === 'number') return isLike(`${value}`)
  if (typeof value !== 'object' || value === null) return false
  return depth > DEPTH_MAX || Object.values(value).some(one => someText(one, isLike, depth + 1))
}

/** The texts and numbers in a member, or in all of them. */
export function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  if (typeof value === 'number') return [`${value}`]
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsIn) : []
}
