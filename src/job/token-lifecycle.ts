// `token-lifecycle`: suspend, activate or delete one token.
import { z } from 'zod'
import { tokenId } from './text.ts'

export const TokenLifecycle = z.strictObject({ id: tokenId(), action: z.enum(['SUSPEND', 'ACTIVATE', 'DELETE']) })
export type TokenLifecycle = z.infer<typeof TokenLifecycle>
