// Why a batch doesn't go on, as far as the store can tell: who works, and whose answers wait. It reads only.
import { BEAT } from '../access/beat.ts'
import * as clients from '../access/clients.ts'
import * as processes from '../access/processes.ts'
import { pendingAnswers } from '../job/outbox.ts'
import type { Db } from '../pool.ts'
import type { Batch } from './batch-row.ts'

export interface StallFacts {
  /** Its client: no worker takes its chunks any more. */
  isRevoked: boolean
  /** Worker processes that live and listen to the queue of its chunks. */
  workers: number
  /** Answers to its client that wait to be published: its results queues are full, or the queue server is away. */
  unread: number
  /** Chunks in the queue, of whatever batch; undefined where the queue server doesn't answer. */
  queued: number | undefined
}

/** From so many waiting answers on, a client's chunks are put off. */
const HELD_BACK = 10_000

export function queueOf({ recordKind }: Pick<Batch, 'recordKind'>): 'token-batch' | 'transaction-batch' {
  return recordKind === 'transaction' ? 'transaction-batch' : 'token-batch'
}

export async function readStallFacts(db: Db, batch: Batch): Promise<Omit<StallFacts, 'queued'>> {
  const workers = (await processes.listWorkers(db, BEAT.deadMs)).filter(({ kinds }) => kinds.includes(queueOf(batch)))
  const waiting = (await pendingAnswers(db)).filter(({ clientId }) => clientId === batch.clientId)
  const client = await clients.find(db, batch.clientId)
  return {
    isRevoked: client?.revokedAt != null,
    workers: workers.length,
    unread: waiting.reduce((sum, { rows }) => sum + rows, 0),
  }
}

/** One sentence for a person; the first that holds. */
export function whyStalled({ isRevoked, workers, unread, queued }: StallFacts): string {
  if (isRevoked) return 'its client is revoked: no chunk of it is taken any more; `tokenmill batch cancel` ends it'
  if (queued === undefined) return 'the queue server does not answer'
  if (workers === 0) return 'nobody works: no worker process listens to its queue'
  if (unread >= HELD_BACK) return `held back: ${unread} answers to its client wait, because their queue is not read`
  if (unread > 0) return `results unread: ${unread} answers to its client wait for room in their queue`
  if (queued === 0) return 'nobody sends: none of its chunks is in the queue'
  return `its chunks wait or are being worked: ${queued} chunks are in the queue`
}
