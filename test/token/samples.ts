// Cards, rows and requests that the tests of this room share. Published test numbers only.
import { isRefusal, type Reason } from '../../src/errors.ts'
import type { BatchLine } from '../../src/token/batch-order.ts'
import type { CardFacts, CreateContext } from '../../src/token/decide.ts'
import { create, type Decided, type Verdict } from '../../src/token/decide.ts'
import type { Fingerprints, TokenRow } from '../../src/token/token.ts'

export const NOW = Date.UTC(2026, 10, 21, 12)
export const DAY_MS = 86_400_000
export const TOKEN_ID = '0199f0c2-7d3a-7b1c-8d2e-0123456789ab'
export const SCOPE = '6f1d2c3b-4a59-4687-9788-a9bacbdcedfe'

/** The fingerprints of a card, which `card` (1 to 255) names. */
export function printsOf(card: number): Fingerprints {
  const fp = `${card.toString(16).padStart(2, '0').repeat(4)}-0000-8000-8000-000000000000`
  return { kept: [fp], versions: [1], known: [fp], turn: 'first' }
}

export function facts(over: Partial<CardFacts> = {}): CardFacts {
  return {
    fingerprints: printsOf(1),
    bin: '41111111',
    lastFour: '1111',
    brand: 'VISA',
    binRange: -1,
    analyticsToken: `a${'A'.repeat(43)}`,
    ...over,
  }
}

export function context(over: Partial<CreateContext> = {}): CreateContext {
  return { now: NOW, tokenId: TOKEN_ID, tokenScope: SCOPE, receiptId: 'receipt-1', ...over }
}

export function batchLine(line: number, over: Partial<BatchLine> = {}): BatchLine {
  return { batchNo: 7, line, onConflict: 'update', onExpired: 'import', acceptedAt: NOW, former: new Set(), ...over }
}

/** The verdict, which must not be a refusal. */
export function decided(verdict: Verdict): Decided {
  if (isRefusal(verdict)) throw new Error(`refused: ${verdict.reason}`)
  return verdict
}

export function reasonOf(value: unknown): Reason | undefined {
  return isRefusal(value) ? value.reason : undefined
}

/** A row as the store would return it: sealed if the token keeps a number. */
export function stored(row: TokenRow): TokenRow {
  return { ...row, sealed: row.tokenType === 'ANALYTICS' ? null : Buffer.from('sealed') }
}

export function rowOf(given: Parameters<typeof create>[1] = {}, over: Partial<TokenRow> = {}): TokenRow {
  return {
    ...stored(decided(create(undefined, given, facts({ brand: given.cardBrand ?? 'VISA' }), context())).row),
    lastReceipt: 'receipt-0',
    ...over,
  }
}

/** A number of `length` digits that starts with `prefix` and passes Luhn. */
export function panFrom(prefix: string, length: number): string {
  const body = prefix.padEnd(length - 1, '0')
  let sum = 0
  for (let index = 0; index < body.length; index++) {
    const digit = Number(body[body.length - 1 - index])
    sum += index % 2 === 0 ? (digit * 2 > 9 ? digit * 2 - 9 : digit * 2) : digit
  }
  return `${body}${(10 - (sum % 10)) % 10}`
}
