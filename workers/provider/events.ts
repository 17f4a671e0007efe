// Events of scheme tokens. The client that had a scheme token made gets them on its results queue, without a
// subscription, and subscribed URLs get them too. An event for the queue goes through the outbox like a result. Both
// are written in the transaction of the change.

import type { ResultEvent } from '../../src/job/answer/result.ts'
import { schemeEventId } from '../../src/job/envelope/ids.ts'
import * as clients from '../../src/store/access/clients.ts'
import type { Scope } from '../../src/store/access/scopes.ts'
import type { Coder } from '../../src/store/codes.ts'
import type { Event } from '../../src/store/event/events.ts'
import { tellUrls } from '../../src/store/event/tell.ts'
import * as outbox from '../../src/store/job/outbox.ts'
import type { Db } from '../../src/store/pool.ts'
import type { StoredScheme } from '../../src/store/provider/scheme-row.ts'
import { renderScheme } from '../../src/token/scheme.ts'
import { formatReuseToken } from '../../src/token/token.ts'
import type { Message } from '../answer/deliver.ts'
import type { Deps } from '../deps.ts'

/** Writes the event; undefined if the client or the scope doesn't exist any more. */
export async function insertEvent(
  db: Db,
  before: StoredScheme,
  after: StoredScheme,
  scope: Scope | undefined,
  { now, coder }: { now: number; coder: Coder },
): Promise<Message | undefined> {
  const client = await clients.find(db, after.clientId)
  if (!scope || !client || client.revokedAt !== null) return undefined
  const resultId = schemeEventId(after.provisionId, after.version)
  const shown = renderScheme({ row: after, support: scope }, 'VALID')
  const event: ResultEvent = {
    v: 1,
    type: 'event',
    result_id: resultId,
    event: 'scheme-token.updated',
    subject: { reuse_token: formatReuseToken(after.tokenId), token_scope: after.tokenScope },
    occurred_at: new Date(now).toISOString(),
    data: {
      ...(shown ? { scheme_token: shown } : {}),
      ...(after.refusal === null ? {} : { reason: `scheme_${after.refusal}` }),
      changed: changesOf(before, after),
    },
  }
  const body = JSON.stringify(event)
  const message = { clientId: after.clientId, replyTo: null, resultId, revision: 0, body }
  const outboxId = await outbox.insert(db, coder, { ...message, receiptId: resultId })
  await tellUrls(db, coder, urlEvent(after, event))
  return { ...message, outboxId }
}

/**
 * The event for URLs says what changed but not the new values: the receiver asks for those with its own credentials.
 */
function urlEvent({ provisionId, version, clientId }: StoredScheme, { subject, data }: ResultEvent): Event {
  const { changed, reason } = data
  return {
    type: 'scheme-token.updated',
    clientId,
    subject: provisionId,
    revision: version,
    data: { ...subject, revision: version, changed, ...(reason === undefined ? {} : { reason }) },
  }
}

export async function publishEvent(message: Message, { announcer }: Pick<Deps, 'announcer'>): Promise<void> {
  await announcer.publish(message)
}

/** The fields of a scheme token's record that changed. */
function changesOf(before: StoredScheme, after: StoredScheme): string[] {
  const changed: string[] = []
  if (before.state !== after.state) changed.push('status')
  if (before.lastFour !== after.lastFour) changed.push('network_token')
  if (before.expiryMonth !== after.expiryMonth || before.expiryYear !== after.expiryYear) changed.push('expiry')
  if (before.par !== after.par) changed.push('payment_account_reference')
  return changed
}
