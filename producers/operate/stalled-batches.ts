// Finds out why batches are stalled: from their rows in the store, from their queue, and from the failed set. It only
// reads.
import { receiptId } from '../../src/job/envelope/ids.ts'
import type { Queues } from '../../src/queue/engine.ts'
import { batchIdOf, RETRY_REFUSALS, whyNot } from '../../src/queue/failed/copy.ts'
import { type FailedJob, failedCopies } from '../../src/queue/failed.ts'
import {
  type FailedChunk,
  queueOf,
  type StalledBatch,
  type StallFacts,
  type StoredStallFacts,
  whyStalled,
} from '../../src/store/batch/why-stalled.ts'

/** What the explanation reads of the store, with the rights of who asks. */
export interface StallReader {
  facts(batch: StalledBatch): Promise<StoredStallFacts>
  /** Which of these receipts there are. */
  done(receiptIds: readonly string[]): Promise<readonly { receiptId: string }[]>
  /** Whether who asks may know of the client's failed chunks; and of the queue, which all clients share. */
  seesFailed(batch: StalledBatch): Promise<boolean>
  seesQueues: boolean
}

interface StallSources {
  reader: StallReader
  /** Opens the queues. Rejects if the queue server doesn't answer. */
  queues: () => Promise<Queues>
  /** ms since the epoch. */
  now: number
  /** For how long copies of failed chunks are read, in ms; undefined: without end. */
  lookMs?: number
  /** How long the queue server may take to say how many chunks are in a queue, in ms; undefined: as long as its client waits. */
  answerMs?: number
}

interface Stall {
  isRevoked: boolean
  /** One sentence that says why. */
  why: string
}

/** How many copies are read, newest first: each holds a whole chunk. */
const COPIES_MAX = 100

/** One explanation per batch, in the order of `batches`. */
export async function explainStalls(batches: readonly StalledBatch[], sources: StallSources): Promise<Stall[]> {
  const { reader } = sources
  const queued = await readQueued(batches, sources)
  return Promise.all(
    batches.map(async batch => {
      const stored = await reader.facts(batch)
      const depth = queued.depths.get(queueOf(batch))
      const facts: StallFacts = {
        ...stored,
        failed: queued.failed.get(batch) ?? 'unseen',
        queued: depth === undefined || reader.seesQueues ? depth : 'unseen',
      }
      return { isRevoked: facts.isRevoked, why: whyStalled(facts) }
    }),
  )
}

type QueueName = ReturnType<typeof queueOf>
type Opened = Pick<StallSources, 'reader' | 'now' | 'lookMs'> & { queues: Queues }

/** A queue without a depth did not answer. A batch without `failed` is one whose failed chunks must not be known. */
async function readQueued(batches: readonly StalledBatch[], sources: StallSources) {
  const depths = new Map<QueueName, number>()
  const failed = new Map<StalledBatch, StallFacts['failed']>()
  const seen = new Set<StalledBatch>()
  for (const batch of batches) if (await sources.reader.seesFailed(batch)) seen.add(batch)
  for (const name of new Set(batches.map(queueOf))) {
    const answered = await readDepth(name, sources).catch(() => undefined)
    if (!answered) continue
    depths.set(name, answered.depth)
    const ofQueue = batches.filter(batch => queueOf(batch) === name && seen.has(batch))
    if (ofQueue.length === 0) continue
    for (const [batch, chunks] of await findFailed(name, ofQueue, { ...sources, ...answered }))
      failed.set(batch, chunks)
  }
  return { depths, failed }
}

async function readDepth(name: QueueName, { queues: open, answerMs }: StallSources) {
  const read = async () => {
    const queues = await open()
    const { waiting, active, delayed } = await queues.depth(name)
    return { queues, depth: waiting + active + delayed }
  }
  return answerMs === undefined ? read() : within(answerMs, read())
}

/** Undefined if it takes longer than `ms`. */
export async function within<T>(ms: number, work: Promise<T>): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<undefined>(resolve => {
    timer = setTimeout(resolve, ms, undefined)
  })
  work.catch(() => {})
  return Promise.race([work, late]).finally(() => clearTimeout(timer))
}

async function findFailed(
  name: QueueName,
  batches: readonly StalledBatch[],
  { reader, now, ...opened }: Opened,
): Promise<Map<StalledBatch, StallFacts['failed']>> {
  const { copies, isWhole } = await findCopies(name, batches, opened).catch(() => ({ copies: [], isWhole: false }))
  const known = await reader.done(copies.map(one => one.receiptId))
  // Chunks with a receipt are left out: their sender has sent them again since.
  const done = new Set(known.map(one => one.receiptId))
  const open = Map.groupBy(
    copies.filter(one => !done.has(one.receiptId)),
    ({ batch }) => batch,
  )
  const chunkOf = ({ copy }: (typeof copies)[number]): FailedChunk => {
    // A revoked client is reported for the whole batch, so it isn't a reason here.
    const refused = whyNot(copy, { now, isRevoked: false })
    return { id: copy.id, fault: copy.code, whyNot: refused && RETRY_REFUSALS[refused] }
  }
  return new Map(batches.map(batch => [batch, open.get(batch)?.map(chunkOf) ?? (isWhole ? [] : ('more' as const))]))
}

/** The newest copy of each chunk of these batches. `isWhole`: the failed set was read to its end. */
async function findCopies(
  name: QueueName,
  batches: readonly StalledBatch[],
  { queues, lookMs = Number.POSITIVE_INFINITY }: Pick<Opened, 'queues' | 'lookMs'>,
) {
  const found = new Map<string, { batch: StalledBatch; copy: FailedJob; receiptId: string }>()
  const until = performance.now() + lookMs
  let read = 0
  for await (const copy of failedCopies(queues, name)) {
    const { clientId, jti } = copy
    const batchId = batchIdOf(copy)
    const batch = batches.find(one => one.clientId === clientId && one.batchId === batchId)
    if (batch && jti !== undefined && !found.has(copy.jobId))
      found.set(copy.jobId, { batch, copy, receiptId: receiptId(batch.clientId, jti) })
    read += 1
    if (read === COPIES_MAX || performance.now() > until) return { copies: [...found.values()], isWhole: false }
  }
  return { copies: [...found.values()], isWhole: true }
}
