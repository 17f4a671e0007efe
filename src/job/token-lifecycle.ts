// `token-lifecycle`: suspend, activate or delete one token.
import { z } from 'zod'
import { reuseTokenOf } from '../token/token.ts'
import { tokenId } from './envelope/text.ts'
import type { FromToken } from './stored-answer.ts'

export const TokenLifecycle = z.strictObject({ id: tokenId(), action: z.enum(['SUSPEND', 'ACTIVATE', 'DELETE']) })
export type TokenLifecycle = z.infer<typeof TokenLifecycle>

/** The only request of this kind that the scheduler sends, once `token_expiry_date` has passed. */
export const TokenExpiry = z.strictObject({ id: tokenId(), action: z.literal('EXPIRE') })
export type TokenExpiry = z.infer<typeof TokenExpiry>

/** Repeats the status that the job reached; the token may have another status by now. */
export const retellLifecycle: FromToken = {
  from: 'token',
  record: (token, { outcome }) => ({ id: reuseTokenOf(token), token_status: outcome ?? token.status }),
}
