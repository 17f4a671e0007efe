// What is asked of the card token service, and its answers: the OpenAPI document is made of these schemas, and the client over HTTP
// is typed by them. They aren't applied to answers; tests compare answers with them.
import { z } from 'zod'
import { emailAddress } from '../../../src/job/envelope/text.ts'
import { TokenCreate } from '../../../src/job/token-create.ts'
import { TokenUpdate } from '../../../src/job/token-update.ts'
import { type CurrencyList, currencies } from '../../../src/token/currency.ts'

/** `on_file` isn't accepted here; the owners of a card have a request of their own. */
export const Put = TokenCreate.omit({ on_file: true })
/** A `cvv` in clear is accepted and dropped, because the vault never stores one. */
export const Patch = TokenUpdate.omit({ id: true, on_file: true })
  .extend({ cvv: z.string().max(30).optional() })
  .refine(body => body.encrypted_card === undefined || body.public_key_alias !== undefined, {
    path: ['public_key_alias'],
    params: { reason: 'field_required' },
  })
const bin = () => z.string().min(4).max(11)
const lastFour = () => z.string().max(4)
const country = () =>
  z
    .string()
    .regex(/^[A-Z]{3}$/)
    .describe('ISO 3166-1 alpha-3; ZZZ where it is unknown.')
const currency = (list: CurrencyList) =>
  z.enum(currencies(list) as [string, ...string[]]).describe('Currency of the card, ISO 4217 alphabetic code.')
const cardType = () => z.enum(['DEBIT', 'CREDIT'])
const month = () => z.int().min(1).max(12)
const year = () => z.int().max(9999)
const status = () => z.enum(['DELETED', 'ACTIVE', 'SUSPENDED'])

const BinDetails = z.strictObject({
  bin: bin().optional(),
  brand: z.string().optional(),
  issuer_country: country().optional(),
  issuer_name: z.string().optional(),
  last_four: lastFour().optional(),
  type: cardType().optional(),
  variant: z.string().optional(),
})

/** If the merchant isn't the token requestor, only the status is shown. */
const schemeToken = (statuses: readonly [string, ...string[]], parLengthMax: number) =>
  z.strictObject({
    network_token: z.string().min(12).max(16).optional(),
    status: z.enum(statuses),
    expiry_month: month().optional(),
    expiry_year: year().optional(),
    payment_account_reference: z.string().max(parLengthMax).optional(),
  })

const common = {
  bin: bin().optional(),
  expiry_month: month().optional(),
  expiry_year: year().optional(),
  last_four: lastFour().optional(),
  card_holder_name: z.string().max(30).optional(),
  issuer_country: country().optional(),
  currency: currency('current').optional(),
  bin_details: BinDetails.optional(),
  updated_at: z.iso.date(),
  created_at: z.iso.date(),
  token_expiry_date: z.iso.date().optional(),
  token_status: status(),
}

const named = {
  reuse_token: z.string().min(14).max(255).optional(),
  analytics_token: z.string().optional(),
  reuse_token_type: z.string(),
  token_scope: z.guid(),
  scheme_token: schemeToken(['VALID', 'SUSPENDED', 'DELETED'], 50).optional(),
}

export const PutRecord = z.strictObject({ ...named, ...common })
export const GetRecord = z.strictObject({
  ...named,
  ...common,
  currency: currency('with-legacy').optional(),
  brand: z.string().optional(),
  issuer_name: z.string().optional(),
  type: cardType().optional(),
  variant: z.string().optional(),
})
export const PatchRecord = z.strictObject({
  ...common,
  card_holder_email: emailAddress().optional(),
  scheme_token: schemeToken(['DELETED', 'ACTIVE', 'SUSPENDED'], 29).optional(),
})

/** The answer to the repeat of a write whose token was deleted in the meantime. */
export const GoneRecord = z.strictObject({ reuse_token: z.string(), token_status: z.literal('DELETED') })

/** The body of a 202; the operation is at `Location`. */
export const AcceptedRecord = z.strictObject({ receipt_id: z.guid(), status: z.literal('PENDING') })

export const Operation = z.strictObject({
  receipt_id: z.guid(),
  status: z.enum(['PENDING', 'SUCCEEDED', 'FAILED']),
  revision: z.int().min(0).describe('Grows with each answer; the highest holds.'),
  code: z
    .int()
    .optional()
    .describe('HTTP status that the write would have been answered with at once. Absent while it is `PENDING`.'),
  record: z.record(z.string(), z.unknown()).optional(),
  error: z
    .record(z.string(), z.unknown())
    .optional()
    .describe('With `FAILED`: the error body that the write would have been answered with.'),
  accepted_at: z.iso.datetime(),
  completed_at: z.iso.datetime().optional(),
})

const details = () => z.record(z.string(), z.strictObject({ message: z.string(), code: z.string() }))

const errorOf = (code: number, detailed: boolean) =>
  z.strictObject({
    code: z.literal(code),
    message: z.string(),
    ...(detailed ? { details: details() } : {}),
    timestamp: z.int().describe('Milliseconds since the epoch.'),
    reversal_status: z.enum(['NONE', 'REQUIRED', 'COMPLETED']),
  })

/** The error bodies by status, for `response: { 200: …, ...ERRORS }`. */
export const ERRORS = {
  400: errorOf(400, true).describe('At least one parameter is invalid.'),
  401: errorOf(401, false).describe('No valid credentials.'),
  403: errorOf(403, true).describe('The roles do not permit this.'),
  404: errorOf(404, true).describe('Not found, or deleted.'),
  429: errorOf(429, false).describe('Too much at once, or the rate limit; see Retry-After.'),
  500: errorOf(500, false).describe('Unexpected error; reversal_status says whether something was left behind.'),
}

export const Nothing = z.null().describe('No body.')
