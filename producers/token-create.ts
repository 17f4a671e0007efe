// Asks for a token of a card. The caller encrypts the card beforehand (client/card.ts); a card in the clear is refused
// here.
import type { z } from 'zod'
import type { Refusal } from '../src/errors.ts'
import { TokenCreate } from '../src/job/token-create.ts'
import { type Ask, check } from './ask.ts'

export type CreateRequest = z.input<typeof TokenCreate>

export function tokenCreate(request: CreateRequest): Ask<'token-create'> | Refusal {
  return check('token-create', TokenCreate, request)
}
