// Why a batch is stalled, as far as the store shows it: whether workers run, and whose answers wait. It only reads.
import { BEAT } from '../access/beat.ts'
import * as clients from '../access/clients.ts'
import * as processes from '../access/processes.ts'
import { HELD_BACK_MIN, pendingAnswers } from '../job/outbox.ts'
import type { Db } from '../pool.ts'
import type { Batch } from './batch-row.ts'

/** A chunk of the batch that failed for good, as a copy in the failed set says. Nobody has proved who wrote the copy. */
export interface FailedChunk {
  /** The id of the copy. */
  id: string
  /** The fault's code. */
  fault: string
  /** Why the copy can't be sent again; undefined if it can. */
  whyNot: string | undefined
}

export interface StallFacts {
  /** The batch's client is revoked, so no worker takes its chunks. */
  isRevoked: boolean
  /** How many live worker processes listen to the queue of its chunks. */
  workers: number
  /**
   * How many answers to its client wait to be published, because its results queues are full or the queue server is
   * away.
   */
  unread: number
  /** How many chunks are in the queue, of any batch; undefined if the queue server doesn't answer. */
  queued: number | undefined
  failed: readonly FailedChunk[]
}

export function queueOf({ recordKind }: Pick<Batch, 'recordKind'>): 'token-batch' | 'transaction-batch' {
  return recordKind === 'transaction' ? 'transaction-batch' : 'token-batch'
}

export async function readStallFacts(db: Db, batch: Batch): Promise<Omit<StallFacts, 'queued' | 'failed'>> {
  const workers = (await processes.listWorkers(db, BEAT.deadMs)).filter(({ kinds }) => kinds.includes(queueOf(batch)))
  const waiting = (await pendingAnswers(db)).filter(({ clientId }) => clientId === batch.clientId)
  const client = await clients.find(db, batch.clientId)
  return {
    isRevoked: client?.revokedAt != null,
    workers: workers.length,
    unread: waiting.reduce((sum, { rows }) => sum + rows, 0),
  }
}

/** The first cause that applies, as one sentence for a person. */
export function whyStalled({ isRevoked, workers, unread, queued, failed }: StallFacts): string {
  if (isRevoked) return 'its client is revoked: no chunk of it is taken any more; `tokenmill batch cancel` ends it'
  if (queued === undefined) return 'the queue server does not answer'
  if (workers === 0) return 'nobody works: no worker process listens to its queue'
  if (unread >= HELD_BACK_MIN) return `held back: ${unread} answers to its client wait, because their queue is not read`
  if (unread > 0) return `results unread: ${unread} answers to its client wait for room in their queue`
  if (failed.length > 0) return whyFailed(failed)
  if (queued === 0) return 'nobody sends: none of its chunks is in the queue'
  return `its chunks wait or are being worked: ${queued} chunks are in the queue`
}

const IDS_MAX = 3

function whyFailed(failed: readonly FailedChunk[]): string {
  const faults = [...new Set(failed.map(({ fault }) => fault))].join(', ')
  const says = `the failed set has ${failed.length === 1 ? '1 copy that names' : `${failed.length} copies that name`} it (${faults})`
  const ids = failed.filter(({ whyNot }) => whyNot === undefined).map(({ id }) => id)
  if (ids.length > IDS_MAX)
    return `${says}; \`tokenmill failed list\` shows them, \`tokenmill failed retry\` sends them again`
  if (ids.length > 0)
    return `${says}; \`tokenmill failed retry ${ids.join(' ')}\` sends ${ids.length === 1 ? 'it' : 'them'} again`
  return `${says} and can not be retried: ${failed[0]?.whyNot}`
}
