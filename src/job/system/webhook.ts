// `webhook`: one attempt to deliver an event to the URL of a subscription. Only the scheduler sends it; the store holds the
// event, the URL and the secret.
import { z } from 'zod'
import { uuid } from '../envelope/text.ts'

export const Webhook = z.strictObject({
  delivery_id: uuid(),
  /** The attempt's number among all attempts of this delivery, from 1. */
  attempt: z.int().min(1),
})
export type Webhook = z.infer<typeof Webhook>

export const retellWebhook = {
  from: 'receipt',
  record: (outcome: string | null) => ({ delivery_state: outcome }),
} as const
