// Writes the end of an authentication as an outbox row, in the transaction that ends it: if the process dies right
// after, the workers publish the row. The rules in src/three-ds decide when an authentication has ended.
import { notificationOf } from '../../three-ds/notification.ts'
import type { Authentication } from '../../three-ds/record.ts'
import * as clients from '../access/clients.ts'
import * as outbox from '../job/outbox.ts'
import type { Db } from '../pool.ts'

/** Inserts the row. Does nothing if the client is unknown or revoked. */
export async function insert(db: Db, record: Authentication): Promise<void> {
  const client = await clients.find(db, record.clientId)
  if (!client || client.revokedAt !== null) return
  const event = notificationOf(record)
  await outbox.insert(db, {
    clientId: record.clientId,
    replyTo: null,
    resultId: event.result_id,
    receiptId: event.result_id,
    revision: 0,
    body: JSON.stringify(event),
  })
}
