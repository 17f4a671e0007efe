// Keeps the rows of batches up to date after their chunks: each batch with a committed chunk is noted, and noted
// batches are summed, each in its own transaction, about once a second at most. After a crash other worker processes
// sum the rest.
import type { Clock } from '../src/clock.ts'
import type { Logger } from '../src/logger.ts'
import { every } from '../src/recurring.ts'
import * as batchList from '../src/store/batch/batch-list.ts'
import { type Batch, WHOLE_BATCH } from '../src/store/batch/batch-row.ts'
import { findUnsettled } from '../src/store/batch/batch-sums.ts'
import * as batches from '../src/store/batch/batches.ts'
import type { Coder } from '../src/store/codes.ts'
import type { Store } from '../src/store/pool.ts'
import { ALL } from '../src/store/sight.ts'
import { batchContext } from '../src/trace/context.ts'
import type { Tracer } from '../src/trace/tracer.ts'
import type { TellUnproved } from './metrics/unproved.ts'

interface SumDeps {
  store: Store
  ring: Coder
  onUnproved: TellUnproved
}

interface ProgressDeps extends SumDeps {
  log: Logger
  tracer?: Tracer | undefined
}

export interface BatchProgress {
  /** Notes that a chunk of the batch was committed. */
  note(batchNo: number): void
  /** Sums the noted batches, and stops. */
  close(): Promise<void>
}

const EVERY_MS = 1_000
/**
 * The more chunks a batch has, the longer its sum takes. So after each sum the batch isn't summed again for 20 times as
 * long as the sum took.
 */
const REST_SHARE = 20

export function openProgress(deps: ProgressDeps): BatchProgress {
  const { tracer } = deps
  const noted = new Set<number>()
  /** Batch number → when it may be summed again, by performance.now(). */
  const restUntil = new Map<number, number>()

  /**
   * Sums the noted batches. Throws the last error. If the sum of a batch fails, the batch is summed again the next
   * time.
   */
  async function sumNoted(isDue: (batchNo: number) => boolean): Promise<void> {
    let failure: { error: unknown } | undefined
    for (const batchNo of [...noted].filter(isDue)) {
      noted.delete(batchNo)
      const startedAt = performance.now()
      const told = await sum(batchNo, deps).catch(error => {
        failure = { error }
        return 'later' as const
      })
      if (told === 'later') noted.add(batchNo)
      else if (tracer && told?.finished) trace(told.finished, tracer)
      const endedAt = performance.now()
      restUntil.set(batchNo, endedAt + (endedAt - startedAt) * REST_SHARE)
    }
    if (failure) throw failure.error
  }
  const stop = every(
    EVERY_MS,
    () => {
      const now = performance.now()
      for (const [batchNo, until] of restUntil) if (until <= now) restUntil.delete(batchNo)
      return sumNoted(batchNo => !restUntil.has(batchNo))
    },
    deps,
  )
  return {
    note: batchNo => {
      noted.add(batchNo)
    },
    async close() {
      await stop()
      await sumNoted(() => true)
    },
  }
}

/** Ends the span of a batch, to which the traces of its chunks link. */
function trace({ clientId, batchId, acceptedAt, chunksDone, rowsDone }: Batch, tracer: Tracer): void {
  const at = batchContext(clientId, batchId)
  if (!at) return
  const attributes = { 'batch.id': batchId, 'batch.chunks': chunksDone, 'batch.records': rowsDone }
  tracer.start('batch', { at, begunAt: acceptedAt, attributes }).end()
}

/** How many batches one call sums, or reports as stalled, at most. */
const UNSETTLED_MAX = 100

/** Sums the batches that crashed worker processes left unsummed. */
export async function sumUnsettled(deps: SumDeps & { clock: Clock }): Promise<void> {
  for (const batchNo of await findUnsettled(deps.store, UNSETTLED_MAX, deps.clock())) await sum(batchNo, deps)
}

/** Undefined: the batch can't end, because of receipts that it tells of. */
async function sum(
  batchNo: number,
  { store, ring, onUnproved }: SumDeps,
): Promise<'later' | { finished: Batch | undefined } | undefined> {
  const summed = await batches.sum(store, ring, batchNo)
  if (summed === 'later' || !('unproved' in summed)) return summed
  for (const id of summed.unproved) onUnproved('receipt', id)
  return undefined
}

/** Writes the events of batches that stall. Call it after the sums: a chunk may be answered but not yet summed. */
export async function tellStalls({
  store,
  ring,
  clock,
}: Pick<SumDeps, 'store' | 'ring'> & { clock: Clock }): Promise<void> {
  const now = clock()
  let told = 0
  for await (const page of batchList.listPages(ALL, store, { state: 'STALLED', now }, WHOLE_BATCH))
    for (const { batchNo } of page.filter(batch => batches.isUntoldStall(batch, now))) {
      if (told === UNSETTLED_MAX) return
      await batches.noteStall(store, ring, batchNo, now)
      told += 1
    }
}
