// Asks to suspend, activate or delete a token. The worker decides whether the token's status permits that.
import type { z } from 'zod'
import type { Refusal } from '../src/errors.ts'
import { TokenLifecycle } from '../src/job/token-lifecycle.ts'
import { type Ask, check } from './ask.ts'

export type LifecycleRequest = z.input<typeof TokenLifecycle>

export function tokenLifecycle(request: LifecycleRequest): Ask<'token-lifecycle'> | Refusal {
  return check('token-lifecycle', TokenLifecycle, request)
}
