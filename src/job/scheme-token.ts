// `scheme-token`: provisions, resumes, suspends or deletes the scheme token of one token.
import { z } from 'zod'
import { tokenId } from './envelope/text.ts'

export const SchemeToken = z.strictObject({ id: tokenId(), action: z.enum(['ACTIVATE', 'SUSPEND', 'DELETE']) })
export type SchemeToken = z.infer<typeof SchemeToken>
