// Finds out why batches are stalled: from their rows in the store, from their queue, and from the failed set. It only
// reads.
import { receiptId } from '../../src/job/envelope/ids.ts'
import type { Queues } from '../../src/queue/engine.ts'
import { batchIdOf, RETRY_REFUSALS, senderOf, whyNot } from '../../src/queue/failed/copy.ts'
import { type FailedJob, failedCopies } from '../../src/queue/failed.ts'
import type { Batch } from '../../src/store/batch/batch-row.ts'
import { type FailedChunk, queueOf, readStallFacts, whyStalled } from '../../src/store/batch/stall.ts'
import * as receipts from '../../src/store/job/receipts.ts'
import type { Db } from '../../src/store/pool.ts'

interface StallSources {
  store: Db
  /** Opens the queues. Rejects if the queue server doesn't answer. */
  queues: () => Promise<Queues>
  /** ms since the epoch. */
  now: number
}

interface Stall {
  isRevoked: boolean
  /** One sentence that says why. */
  why: string
}

/** How many copies are read, newest first: each holds a whole chunk. */
const COPIES_MAX = 100

/** One explanation per batch, in the order of `batches`. */
export async function explainStalls(batches: readonly Batch[], sources: StallSources): Promise<Stall[]> {
  const queued = await sources
    .queues()
    .then(queues => readQueued(batches, { ...sources, queues }))
    .catch(() => undefined)
  return Promise.all(
    batches.map(async batch => {
      const stored = await readStallFacts(sources.store, batch)
      const facts = { ...stored, queued: queued?.depths.get(queueOf(batch)), failed: queued?.failed.get(batch) ?? [] }
      return { isRevoked: facts.isRevoked, why: whyStalled(facts) }
    }),
  )
}

type QueueName = ReturnType<typeof queueOf>
type Opened = Pick<StallSources, 'store' | 'now'> & { queues: Queues }

async function readQueued(batches: readonly Batch[], opened: Opened) {
  const depths = new Map<QueueName, number>()
  const failed = new Map<Batch, FailedChunk[]>()
  for (const name of new Set(batches.map(queueOf))) {
    const { waiting, active, delayed } = await opened.queues.depth(name)
    depths.set(name, waiting + active + delayed)
    const ofQueue = batches.filter(batch => queueOf(batch) === name)
    for (const [batch, chunks] of await findFailed(name, ofQueue, opened)) failed.set(batch, chunks)
  }
  return { depths, failed }
}

async function findFailed(
  name: QueueName,
  batches: readonly Batch[],
  { store, queues, now }: Opened,
): Promise<Map<Batch, FailedChunk[]>> {
  const found = await findCopies(name, batches, queues)
  const known = await receipts.findAll(
    store,
    found.map(one => one.receiptId),
  )
  // Chunks with a receipt are left out: their sender has sent them again since.
  const done = new Set(known.map(one => one.receiptId))
  const open = found.filter(one => !done.has(one.receiptId))
  return new Map(
    [...Map.groupBy(open, ({ batch }) => batch)].map(([batch, ofBatch]) => [
      batch,
      ofBatch.map(({ copy }) => {
        // A revoked client is reported for the whole batch, so it isn't a reason here.
        const refused = whyNot(copy, { now, isRevoked: false })
        return { id: copy.id, fault: copy.code, whyNot: refused && RETRY_REFUSALS[refused] }
      }),
    ]),
  )
}

/** The newest copy of each chunk of these batches. */
async function findCopies(name: QueueName, batches: readonly Batch[], queues: Queues) {
  const found = new Map<string, { batch: Batch; copy: FailedJob; receiptId: string }>()
  let read = 0
  for await (const copy of failedCopies(queues, name)) {
    const { clientId, jti } = senderOf(copy)
    const batchId = batchIdOf(copy)
    const batch = batches.find(one => one.clientId === clientId && one.batchId === batchId)
    if (batch && jti !== undefined && !found.has(copy.jobId))
      found.set(copy.jobId, { batch, copy, receiptId: receiptId(batch.clientId, jti) })
    read += 1
    if (read === COPIES_MAX) break
  }
  return [...found.values()]
}
