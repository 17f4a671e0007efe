// Why a batch is stalled, in words for a person, from what the store and the queues say. It reads nothing.
import { HELD_BACK_MIN } from '../job/outbox.ts'

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
   * away; not all are counted where there are HELD_BACK_MIN. `unseen`: whoever asks may not know it.
   */
  unread: number | 'unseen'
  /** How many chunks are in the queue, of any batch; undefined if the queue server doesn't answer. */
  queued: number | 'unseen' | undefined
  /** The host of workers that is loaded most: how many processes want each of its cores. `unseen`: as above. */
  loaded?: { host: string; load: number } | 'unseen' | undefined
  /** `more`: none was found, and not all of the failed set was read. `unseen`: whoever asks may not know it. */
  failed: readonly FailedChunk[] | 'unseen' | 'more'
}

/** What the store says. */
export type StoredStallFacts = Pick<StallFacts, 'isRevoked' | 'workers' | 'unread' | 'loaded'>

/** What names a batch and its queue. */
export interface StalledBatch {
  clientId: string
  batchId: string
  recordKind: string
}

export function queueOf({ recordKind }: Pick<StalledBatch, 'recordKind'>): 'token-batch' | 'transaction-batch' {
  return recordKind === 'transaction' ? 'transaction-batch' : 'token-batch'
}

/** The first cause that applies, as one sentence for a person. */
export function whyStalled({ isRevoked, workers, unread, queued, failed, loaded }: StallFacts): string {
  const busy = overloadText(loaded)
  if (isRevoked) return 'its client is revoked: no chunk of it is taken any more; `tokenmill batch cancel` ends it'
  if (queued === undefined) return 'the queue server does not answer'
  if (workers === 0)
    return `nobody works: no worker process listens to its queue${busy && `; ${busy}, so that they may only be late`}`
  if (unread === 'unseen')
    return 'workers listen to its queue; whether its results are unread, its chunks failed or nobody sends, `tokenmill batch show` says'
  if (unread >= HELD_BACK_MIN)
    return `held back: ${unread === HELD_BACK_MIN ? '10,000 or more' : unread} answers to its client wait, because their queue is not read`
  if (unread > 0) return `results unread: ${unread} answers to its client wait for room in their queue`
  if (typeof failed === 'object' && failed.length > 0) return whyFailed(failed)
  if (failed === 'unseen' || queued === 'unseen')
    return 'workers listen to its queue and its results are read; whether its chunks wait or nobody sends, `tokenmill batch show` says'
  if (failed === 'more')
    return `workers listen to its queue, which has ${queued} chunks; whether chunks of it failed is not known, because the failed set was not read to its end; \`tokenmill failed list\` lists it`
  if (queued === 0) return `nobody sends: none of its chunks is in the queue${busy && `; ${busy}`}`
  return `${busy && `${busy}; `}its chunks wait or are being worked: ${queued} chunks are in the queue`
}

/** So many processes want each core of a host that is overloaded: each of them goes at half its speed or slower. */
const OVERLOADED_MIN = 2

function overloadText(loaded: StallFacts['loaded']): string {
  if (typeof loaded !== 'object' || loaded.load < OVERLOADED_MIN) return ''
  return `the machine ${loaded.host} is overloaded: ${loaded.load.toFixed(1)} processes want each of its cores`
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
