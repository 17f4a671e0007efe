// `token-update`: the body of PATCH /api/v2/card/{id} and the token's id. A `cvv` in clear is refused.
import { z } from 'zod'
import { alias, date, emailAddress, encryptedCard, month, text, tokenId, year } from './envelope/text.ts'
import { OnFileRequest } from './on-file.ts'

/** The fields of a PATCH beside the card. `null` clears a field; a blank name is none. */
export const updateFields = {
  card_holder_name: text(0, 30).nullable().optional(),
  card_holder_email: emailAddress().nullable().optional(),
  expiry_month: month().optional(),
  expiry_year: year().optional(),
  token_expiry_date: date().nullable().optional(),
  scheme_token_action: z.enum(['ACTIVATE', 'SUSPEND', 'DELETE']).optional(),
}

export const TokenUpdate = z.strictObject({
  id: tokenId(),
  encrypted_card: encryptedCard().optional(),
  public_key_alias: alias().optional(),
  ...updateFields,
  on_file: OnFileRequest.optional(),
})
export type TokenUpdate = z.infer<typeof TokenUpdate>

export function hasSchemeAction(request: { scheme_token_action?: unknown }): boolean {
  return request.scheme_token_action !== undefined
}
