// Writes events, and for each subscription the row that delivers them: an outbox row for the client's results queue, a
// delivery for a URL. All are written in the transaction of the change, so neither exists without the other.

import type { ResultEvent } from '../../job/answer/result.ts'
import { subscribedEventId } from '../../job/envelope/ids.ts'
import type { Coder } from '../codes.ts'
import * as outbox from '../job/outbox.ts'
import type { Db } from '../pool.ts'
import * as deliveries from './deliveries.ts'
import * as endpoints from './endpoints.ts'
import * as events from './events.ts'

/**
 * Writes the event and its deliveries. The event is written even if nobody is subscribed, and is kept for some days.
 */
export async function tell(db: Db, coder: Coder, event: events.Event): Promise<void> {
  await tellAll(db, coder, [event], await endpoints.findSubscribed(db, event))
}

/**
 * For an event that reaches the results queue by other means: writes deliveries to URLs only, and nothing at all if no
 * URL is subscribed.
 */
export async function tellUrls(db: Db, coder: Coder, event: events.Event): Promise<void> {
  const subscribed = (await endpoints.findSubscribed(db, event)).filter(({ url }) => url !== null)
  if (subscribed.length > 0) await tellAll(db, coder, [event], subscribed)
}

/**
 * Writes events of one type, of which no two may have the same client and subject. `subscribed`: endpoints of their
 * clients.
 */
export async function tellAll(
  db: Db,
  coder: Coder,
  told: readonly events.Event[],
  subscribed: readonly endpoints.Subscribed[],
): Promise<void> {
  const stored = await events.insertAll(db, coder, told)
  const pairs = stored.flatMap(event =>
    subscribed.filter(({ clientId }) => clientId === event.clientId).map(endpoint => ({ event, endpoint })),
  )
  await Promise.all([
    outbox.insertAll(
      db,
      coder,
      pairs.filter(({ endpoint }) => endpoint.url === null).map(({ event, endpoint }) => outboxRowOf(event, endpoint)),
    ),
    deliveries.insertAll(
      db,
      pairs
        .filter(({ endpoint }) => endpoint.url !== null)
        .map(({ event, endpoint: { endpointId } }) => ({
          deliveryId: subscribedEventId(endpointId, event),
          eventId: event.eventId,
          endpointId,
        })),
    ),
  ])
}

function outboxRowOf(event: events.StoredEvent, { endpointId }: endpoints.Subscribed) {
  const { clientId, type, subject, revision, data, createdAt } = event
  const resultId = subscribedEventId(endpointId, event)
  const told: ResultEvent = {
    v: 1,
    type: 'event',
    result_id: resultId,
    event: type,
    subject: { id: subject, revision },
    occurred_at: new Date(createdAt).toISOString(),
    data,
  }
  return { clientId, replyTo: null, resultId, receiptId: resultId, revision: 0, body: JSON.stringify(told) }
}
