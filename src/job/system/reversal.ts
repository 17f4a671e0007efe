// `reversal`: gives up the named envelopes of one job, and undoes what the job did if no other envelope has asked for it.
import { z } from 'zod'
import { uuid } from '../envelope/text.ts'

const Envelope = z.string().regex(/^[A-Za-z0-9_-]{43}$/)

export const Reversal = z.strictObject({
  receipt_id: uuid(),
  /** SHA-256 of the JWS that is given up, base64url. */
  envelope: Envelope,
  /** Those of the same request that its sender signed before. */
  earlier: z.array(Envelope).min(1).max(15).optional(),
})
export type Reversal = z.infer<typeof Reversal>
