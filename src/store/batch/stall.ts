// What the store says about a batch that is stalled: whether workers run, and whose answers wait. It only reads.
import { BEAT } from '../access/beat.ts'
import * as clients from '../access/clients.ts'
import * as processes from '../access/processes.ts'
import { pendingAnswers } from '../job/outbox.ts'
import type { Db } from '../pool.ts'
import { queueOf, type StalledBatch, type StoredStallFacts } from './why-stalled.ts'

/** A worker whose heartbeats are late because its host is overloaded counts, too, in ms. */
export const LOADED_MS = 300_000

export async function readStallFacts(db: Db, batch: StalledBatch): Promise<StoredStallFacts> {
  const workers = (await processes.listWorkers(db, BEAT.deadMs)).filter(({ kinds }) => kinds.includes(queueOf(batch)))
  const waiting = (await pendingAnswers(db)).filter(({ clientId }) => clientId === batch.clientId)
  const client = await clients.find(db, batch.clientId)
  return {
    isRevoked: client?.revokedAt != null,
    workers: workers.length,
    loaded: await processes.findMostLoaded(db, LOADED_MS),
    unread: waiting.reduce((sum, { rows }) => sum + rows, 0),
  }
}
