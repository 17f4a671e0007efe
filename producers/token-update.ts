// Asks to change a token's data, or to put another card behind it. A plain `cvv` is refused: it must not lie in a queue
// in the clear, and no part of the vault would keep it.
import type { z } from 'zod'
import { isRefusal, type Refusal, refuse } from '../src/errors.ts'
import type { TokenUpdate } from '../src/job/token-update.ts'
import { type Ask, check } from './ask.ts'

export type UpdateRequest = z.input<typeof TokenUpdate>

export function tokenUpdate(request: UpdateRequest): Ask | Refusal {
  const ask = check('token-update', request)
  if (isRefusal(ask)) return ask
  const lacksAlias = ask.request['encrypted_card'] !== undefined && ask.request['public_key_alias'] === undefined
  return lacksAlias ? refuse('field_required', 'body.public_key_alias') : ask
}
