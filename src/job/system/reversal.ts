// `reversal`: undoes what the job of one receipt did, provided that the named envelope is the one that took effect.
import { z } from 'zod'
import { uuid } from '../envelope/text.ts'

export const Reversal = z.strictObject({
  receipt_id: uuid(),
  /** SHA-256 of the JWS of the job to undo, base64url. */
  envelope: z.string().regex(/^[A-Za-z0-9_-]{43}$/),
})
export type Reversal = z.infer<typeof Reversal>

export const retellReversal = {
  from: 'receipt',
  record: (outcome: string | null) => ({ reversal_status: outcome }),
} as const
