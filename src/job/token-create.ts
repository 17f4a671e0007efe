// `token-create`: the body of PUT /api/v2/card, and `on_file`.
import { z } from 'zod'
import { alias, brandName, date, encryptedCard, month, uuid, year } from './envelope/text.ts'
import { OnFileRequest } from './on-file.ts'

const TOKEN_TYPES = ['REUSE', 'ANALYTICS', 'REUSE_AND_ANALYTICS'] as const

/** The fields of a create beside the card and its scope. */
export const createFields = {
  card_brand: brandName().optional(),
  token_type: z.enum(TOKEN_TYPES).optional(),
  reuse_token_type: z
    .string()
    .regex(/^[A-Z0-9_]{1,32}$/)
    .optional(),
  reuse_token_details: z.strictObject({ expiry_month: month(), expiry_year: year() }).optional(),
  token_expiry_date: date().optional(),
  token_context: z
    .strictObject({ entity_id: uuid().optional(), payment_provider_contract: uuid().optional() })
    .optional(),
}

export const TokenCreate = z.strictObject({
  token_scope: uuid(),
  encrypted_card: encryptedCard(),
  public_key_alias: alias(),
  ...createFields,
  on_file: OnFileRequest.optional(),
})
export type TokenCreate = z.infer<typeof TokenCreate>

/** Whether the request asks a third party to make the reuse token. */
export function asksThirdParty(request: { reuse_token_type?: unknown }): boolean {
  return (request.reuse_token_type ?? 'INTERNAL') !== 'INTERNAL'
}
