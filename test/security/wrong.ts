// Makes requests with one wrong field, from correct ones.
import type { RecordKind } from '../../src/job/catalogue.ts'
import type { Json } from './forge.ts'

/** A part of every wrong text, which no answer may hold. */
export const MARK = 'qzmarkedvalue'
/** `textOf` replaces this by deep nesting, which JSON.stringify can't write. */
const DEEP = '@@deep@@'
const DEPTH = 100_000

export interface Wrong {
  path: readonly string[]
  what: string
  request: unknown
}

const VALUES: Record<string, unknown> = {
  'is null': null,
  'is true': true,
  'is an object': { [`${MARK}-0000`]: MARK },
  'is an array of itself': [MARK],
  'is an empty array': [],
  'is empty': '',
  'is blank': ' ',
  'is a word': `${MARK} is no value of anything, and is too long for the rest of them, so that nothing takes it`.repeat(
    3,
  ),
  'is far too long': MARK.repeat(20_000),
  'holds NUL': `a\u0000${MARK}`,
  'holds an escape': `a\u001b[31m${MARK}`,
  'holds a line separator': `a\u2028${MARK}`,
  'holds half a surrogate pair': `a\ud800${MARK}`,
  'is a fraction': 0.5,
  'is negative': -1,
  'is huge': 1e308,
  'is beyond exactness': 2 ** 53,
  'is nested without end': DEEP,
}

/** The fields for which such a value is correct. */
const RIGHT: Record<string, readonly string[]> = {
  'is null': ['reason', 'proof', 'card_holder_name', 'card_holder_email', 'token_expiry_date'],
  'is true': ['dry_run', 'refresh'],
  'is an object': ['parameters', 'policy', 'transaction'],
  'is an empty array': [],
  'is a word': ['encrypted_card'],
  'is empty': ['reference', 'cardholderName', 'sequenceNumber'],
  'is blank': [
    'encrypted_card',
    'card_holder_name',
    'provider_account',
    'customer_id',
    'card_id',
    'reference',
    'cardholderName',
    'cardNumber',
    ...['expiryMonth', 'expiryYear', 'sequenceNumber', 'startMonth', 'startYear'],
    ...['subject', 'seen', 'reason'],
  ],
  'is a fraction': [
    'accepted_at',
    'cardNumber',
    'expiryMonth',
    'expiryYear',
    'sequenceNumber',
    'startMonth',
    'startYear',
  ],
  'is negative': ['cardNumber', 'expiryMonth', 'expiryYear', 'sequenceNumber', 'startMonth', 'startYear'],
  'is huge': ['cardNumber', 'expiryMonth', 'expiryYear', 'sequenceNumber', 'startMonth', 'startYear'],
  'is beyond exactness': [
    'accepted_at',
    'cardNumber',
    'expiryMonth',
    'expiryYear',
    'sequenceNumber',
    'startMonth',
    'startYear',
  ],
}

export function* wrongWays(request: Json, required: readonly string[]): Generator<Wrong> {
  for (const path of pathsOf(request)) {
    for (const [what, value] of Object.entries(VALUES)) {
      if (RIGHT[what]?.includes(path.at(-1) ?? '')) continue
      yield { path, what, request: laid(request, path, value) }
    }
  }
  for (const name of required) {
    const { [name]: _, ...rest } = request
    yield { path: [name], what: 'is missing', request: rest }
  }
  for (const key of ['surprise', 'constructor', 'toString', 'hasOwnProperty', '__proto__']) {
    yield { path: [key], what: 'is unknown', request: withKey(request, key) }
  }
}

function pathsOf(value: Json, before: readonly string[] = []): string[][] {
  return Object.entries(value).flatMap(([key, inner]) => {
    const path = [...before, key]
    const isObject = typeof inner === 'object' && inner !== null && !Array.isArray(inner)
    return isObject ? [path, ...pathsOf(inner as Json, path)] : [path]
  })
}

export function laid(value: Json, [key = '', ...rest]: readonly string[], put: unknown): Json {
  return { ...value, [key]: rest.length === 0 ? put : laid(value[key] as Json, rest, put) }
}

function withKey(request: Json, key: string): Json {
  const copy = { ...request }
  Object.defineProperty(copy, key, { value: { polluted: MARK }, enumerable: true, configurable: true, writable: true })
  return copy
}

/** The JSON text of the value, with each `DEEP` replaced by deeply nested lists. */
export function textOf(value: unknown): string {
  return JSON.stringify(value).replaceAll(`"${DEEP}"`, '['.repeat(DEPTH) + ']'.repeat(DEPTH))
}

export const TOKEN = `t${'0'.repeat(26)}`
const UUID = '11111111-2222-4333-8444-555555555555'

export interface Right {
  kind: string
  request: Json
  required: readonly string[]
}

export function rightRequests(
  scope: string,
  entity: string,
  sealed: { encrypted_card: string; public_key_alias: string },
  batch: Json,
): Right[] {
  return [
    {
      kind: 'token-create',
      required: ['token_scope', 'encrypted_card', 'public_key_alias'],
      request: {
        token_scope: scope,
        ...sealed,
        card_brand: 'VISA',
        token_type: 'REUSE',
        reuse_token_type: 'INTERNAL',
        reuse_token_details: { expiry_month: 12, expiry_year: 2031 },
        token_expiry_date: '2099-12-31',
        token_context: { entity_id: entity, payment_provider_contract: UUID },
      },
    },
    {
      kind: 'token-update',
      required: ['id'],
      request: {
        id: TOKEN,
        ...sealed,
        card_holder_name: 'ANNA',
        card_holder_email: 'anna@example.com',
        expiry_month: 12,
        expiry_year: 2031,
        token_expiry_date: '2099-12-31',
        scheme_token_action: 'ACTIVATE',
      },
    },
    { kind: 'token-lifecycle', required: ['id', 'action'], request: { id: TOKEN, action: 'SUSPEND' } },
    { kind: 'scheme-token', required: ['id', 'action'], request: { id: TOKEN, action: 'SUSPEND' } },
    {
      kind: 'reference',
      required: ['token_scope', 'provider', 'card_id', 'action'],
      request: {
        token_scope: scope,
        provider: 'acme',
        provider_account: 'a-1',
        customer_id: 'c-1',
        card_id: 'card-1',
        action: 'RELEASE',
        on_orphan: 'keep',
      },
    },
    {
      kind: 'token-batch',
      required: ['batch_id', 'chunk', 'chunk_records', 'record_kind', 'accepted_at', 'block'],
      request: batch,
    },
    {
      kind: 'transaction-batch',
      required: ['batch_id', 'chunk', 'transactions'],
      request: { batch_id: 'ledger', chunk: 0, transactions: [{ line: 1, transaction: {} }] },
    },
    {
      kind: 'report',
      required: ['report_type', 'entity_id', 'parameters', 'mime_type'],
      request: { report_type: 'INVOICE', entity_id: entity, parameters: {}, mime_type: 'text/csv', refresh: true },
    },
    {
      kind: 'reversal',
      required: ['receipt_id', 'envelope'],
      request: { receipt_id: UUID, envelope: 'A'.repeat(43) },
    },
    { kind: 'webhook', required: ['delivery_id', 'attempt'], request: { delivery_id: UUID, attempt: 1 } },
    {
      kind: 'act',
      required: ['act', 'subject', 'parameters', 'seen', 'reason', 'person_id', 'nonce', 'expires_at', 'proof'],
      request: {
        act: 'batch.pause',
        subject: 'a-batch',
        parameters: { client_id: `c${'0'.repeat(25)}` },
        seen: 'RUNNING',
        reason: 'too fast',
        person_id: UUID,
        nonce: 'AAAAAAAAAAAAAAAAAAAAAA',
        expires_at: 0,
        proof: null,
      },
    },
    { kind: 'manifest-total', required: ['total_id', 'part'], request: { total_id: UUID, part: 0 } },
  ]
}

/** Records that are right, by kind. */
export const RIGHT_RECORDS: Record<Exclude<RecordKind, 'scheme-token'>, Json> = {
  'token-create': {
    card: {
      cardNumber: '4111111111111111',
      expiryMonth: 12,
      expiryYear: 2031,
      cardholderName: 'A',
      sequenceNumber: '1',
      startMonth: 1,
      startYear: 2020,
    },
    card_brand: 'VISA',
    token_type: 'REUSE',
    reuse_token_type: 'INTERNAL',
    token_expiry_date: '2099-12-31',
  },
  'token-update': {
    id: TOKEN,
    card_holder_name: 'ANNA',
    card_holder_email: 'anna@example.com',
    expiry_month: 12,
    expiry_year: 2031,
  },
  'token-lifecycle': { id: TOKEN, action: 'SUSPEND' },
  reference: { provider: 'acme', customer_id: 'c-1', card_id: 'card-1', action: 'RELEASE', on_orphan: 'keep' },
}
