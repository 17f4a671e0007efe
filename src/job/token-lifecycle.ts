// `token-lifecycle`: suspend, activate or delete one token.
import { z } from 'zod'
import { reuseTokenOf } from '../token/token.ts'
import { tokenId } from './envelope/text.ts'
import type { FromToken } from './stored-answer.ts'

export const TokenLifecycle = z.strictObject({ id: tokenId(), action: z.enum(['SUSPEND', 'ACTIVATE', 'DELETE']) })
export type TokenLifecycle = z.infer<typeof TokenLifecycle>

/** All that the scheduler may ask of this kind, and nobody else: `token_expiry_date` has passed. */
export const TokenExpiry = z.strictObject({ id: tokenId(), action: z.literal('EXPIRE') })
export type TokenExpiry = z.infer<typeof TokenExpiry>

/** The status that the job came to, which need not be the token's of today. */
export const retellLifecycle: FromToken = {
  from: 'token',
  record: (token, { outcome }) => ({ id: reuseTokenOf(token), token_status: outcome ?? token.status }),
}
