// `webhook`: one attempt to deliver an event to the URL of a subscription. Only the scheduler sends it; the store holds the
// event, the URL and the secret.
import { z } from 'zod'
import { uuid } from '../envelope/text.ts'
import { kind } from '../kind-entry.ts'
import { fromOutcome } from '../stored-answer.ts'

export const Webhook = z.strictObject({
  delivery_id: uuid(),
  /** The attempt's number among all attempts of this delivery, from 1. */
  attempt: z.int().min(1),
})
export type Webhook = z.infer<typeof Webhook>

export const webhookKind = kind({
  request: Webhook,
  description: 'Delivers an event to the URL of a subscription, once. System clients only.',
  role: null,
  // The job waits for a receiver's server and needs little CPU, so the high concurrency of interactive kinds suits it.
  bulk: false,
  systemClients: ['scheduler'],
  systemOnly: true,
  retell: fromOutcome('delivery_state'),
})
