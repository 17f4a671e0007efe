// Writes an event, and for each subscription the row that delivers it: an outbox row for the client's results queue, a
// delivery for a URL. All are written in the transaction of the change, so neither exists without the other.
import { subscribedEventId } from '../../job/envelope/ids.ts'
import type { ResultEvent } from '../../job/result.ts'
import * as outbox from '../job/outbox.ts'
import type { Db } from '../pool.ts'
import * as deliveries from './deliveries.ts'
import * as endpoints from './endpoints.ts'
import * as events from './events.ts'

/**
 * Writes the event and its deliveries. The event is written even if nobody is subscribed, and is kept for some days.
 */
export async function tell(db: Db, event: events.Event): Promise<void> {
  const stored = await events.insert(db, event)
  for (const { endpointId, url } of await endpoints.findSubscribed(db, event)) {
    if (url === null) await tellQueue(db, endpointId, stored)
    else await tellUrl(db, endpointId, stored)
  }
}

/**
 * For an event that reaches the results queue by other means: writes deliveries to URLs only, and nothing at all if no
 * URL is subscribed.
 */
export async function tellUrls(db: Db, event: events.Event): Promise<void> {
  const subscribed = (await endpoints.findSubscribed(db, event)).filter(({ url }) => url !== null)
  if (subscribed.length === 0) return
  const stored = await events.insert(db, event)
  for (const { endpointId } of subscribed) await tellUrl(db, endpointId, stored)
}

async function tellUrl(db: Db, endpointId: string, event: events.StoredEvent): Promise<void> {
  const deliveryId = subscribedEventId(endpointId, event)
  await deliveries.insert(db, { deliveryId, eventId: event.eventId, endpointId })
}

async function tellQueue(db: Db, endpointId: string, event: events.StoredEvent): Promise<void> {
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
  await outbox.insert(db, {
    ...{ clientId, replyTo: null, resultId, receiptId: resultId, revision: 0, body: JSON.stringify(told) },
  })
}
