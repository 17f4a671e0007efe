// Asks to change a token's data, or to link it to another card. A `cvv` in clear is refused: it must not lie in a
// queue, and the vault would not store it.
import type { z } from 'zod'
import { isRefusal, type Refusal, refuse } from '../src/errors.ts'
import { TokenUpdate } from '../src/job/token-update.ts'
import { type Ask, check } from './ask.ts'

export type UpdateRequest = z.input<typeof TokenUpdate>

export function tokenUpdate(request: UpdateRequest): Ask<'token-update'> | Refusal {
  const ask = check('token-update', TokenUpdate, request)
  if (isRefusal(ask)) return ask
  const lacksAlias = ask.request['encrypted_card'] !== undefined && ask.request['public_key_alias'] === undefined
  return lacksAlias ? refuse('field_required', 'body.public_key_alias') : ask
}
