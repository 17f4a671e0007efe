// `on_file`: the owner of a card, and data that must be kept with the card. A member of requests and records that
// create or update a token. It is sent only to workers that know it (`features.ts`).
import { z } from 'zod'
import { AGREED_BY, AGREEMENTS, type Claim, type OwnerId } from '../token/on-file.ts'
import { PAN_LENGTH } from '../token/pan.ts'
import { date, text } from './envelope/text.ts'

const PROVIDER = /^[A-Za-z0-9._-]{1,64}$/

/** The members that name an owner within a token scope. */
export const ownerFields = {
  provider: z.string().regex(PROVIDER),
  provider_account: text(1, 128).optional(),
  customer_id: text(1, 128).optional(),
  card_id: text(1, 128),
}

const BillingAddressRequest = z.strictObject({
  line1: text(1, 256).optional(),
  line2: text(1, 256).optional(),
  city: text(1, 128).optional(),
  state: text(1, 128).optional(),
  postal_code: text(1, 32).optional(),
  country: z
    .string()
    .regex(/^[A-Z]{2}$/)
    .optional(),
})

export const OnFileRequest = z.strictObject({
  ...ownerFields,
  cardholder_name: text(1, 256).optional(),
  network_transaction_ids: z.array(text(1, 64)).min(1).max(50).optional(),
  network_transaction_id: text(1, 64).optional(),
  transaction_link_id: text(1, 64).optional(),
  first_amount: z.int().min(0).optional(),
  first_currency: z
    .string()
    .regex(/^[A-Z]{3}$/)
    .optional(),
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

/** The texts that most files give, and how long they may be. */
const USUAL_TEXTS: ReadonlyMap<string, number> = new Map([
  ['provider', 64],
  ['provider_account', 128],
  ['customer_id', 128],
  ['card_id', 128],
  ['cardholder_name', 256],
])

/**
 * Whether the value has only usual members, passes the schema, and has no text that could look like a card number: a
 * fast check that most records pass. A value for which it returns false may still be valid.
 */
export function isUsualOnFile(value: unknown): value is OnFileRecord {
  if (typeof value !== 'object' || value === null) return false
  const members = value as Record<string, unknown>
  for (const name in members) {
    const member = members[name]
    if (name === 'is_default' ? typeof member !== 'boolean' : !isUsualText(member, USUAL_TEXTS.get(name) ?? 0))
      return false
  }
  const { provider, card_id: cardId } = members
  return typeof provider === 'string' && PROVIDER.test(provider) && cardId !== undefined
}

/** Printable ASCII with too few digits for a card number. */
function isUsualText(text: unknown, most: number): boolean {
  if (typeof text !== 'string' || text.length === 0 || text.length > most) return false
  let digits = 0
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index)
    if (code < 0x20 || code > 0x7e) return false
    if (code >= 0x30 && code <= 0x39) digits += 1
  }
  return digits < PAN_LENGTH.least
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
