// Keeps the rows of batches up to date after their chunks: what was committed is noted, and about once a second each noted
// batch is summed in a transaction of its own. What a crash leaves unsummed, the scheduler sums.
import type { Logger } from '../../src/log.ts'
import { every } from '../../src/recurring.ts'
import * as batchList from '../../src/store/batch/batch-list.ts'
import type { Batch } from '../../src/store/batch/batch-row.ts'
import * as batches from '../../src/store/batch/batches.ts'
import type { Store } from '../../src/store/pool.ts'
import { batchContext } from '../../src/trace/context.ts'
import type { Tracer } from '../../src/trace/tracer.ts'

interface ProgressDeps {
  store: Store
  log: Logger
  tracer?: Tracer | undefined
}

export interface BatchProgress {
  /** A chunk of it was committed. */
  note(batchNo: number): void
  /** Sums what was noted, and stops. */
  close(): Promise<void>
}

const EVERY_MS = 1_000
/** A sum takes the longer the more chunks there are: at most a twentieth of the time goes by with it. */
const REST_SHARE = 20

export function openProgress(deps: ProgressDeps): BatchProgress {
  const { store, tracer } = deps
  const noted = new Set<number>()
  /** By performance.now(). */
  const restUntil = new Map<number, number>()

  /** Throws the last of what failed: that is noted still. */
  async function sumNoted(isDue: (batchNo: number) => boolean): Promise<void> {
    let failure: { error: unknown } | undefined
    for (const batchNo of [...noted].filter(isDue)) {
      noted.delete(batchNo)
      const startedAt = performance.now()
      const told = await batches.sum(store, batchNo).catch(error => {
        failure = { error }
        return 'later' as const
      })
      if (told === 'later') noted.add(batchNo)
      else if (tracer && told.finished) trace(told.finished, tracer)
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

/** The span to which the traces of its chunks have a link. */
function trace({ clientId, batchId, acceptedAt, chunksDone, rowsDone }: Batch, tracer: Tracer): void {
  const at = batchContext(clientId, batchId)
  if (!at) return
  const attributes = { 'batch.id': batchId, 'batch.chunks': chunksDone, 'batch.records': rowsDone }
  tracer.start('batch', { at, begunAt: acceptedAt, attributes }).end()
}

/** So many batches of each sort at once. */
const UNSETTLED_MAX = 100

/** What worker processes that crashed left unsummed. */
export async function sumUnsettled({ store, clock }: { store: Store; clock: () => number }): Promise<void> {
  for (const batchNo of await batchList.findUnsettled(store, UNSETTLED_MAX, clock())) await batches.sum(store, batchNo)
}

/** Tells of batches that stall. It follows the sums: a chunk that was answered may only be unsummed. */
export async function tellStalls({ store, clock }: { store: Store; clock: () => number }): Promise<void> {
  const now = clock()
  const accepts = (batch: Batch) => batches.isUntoldStall(batch, now)
  const stalled = await batchList.list(store, { state: { is: 'STALLED', now }, accepts, limit: UNSETTLED_MAX })
  for (const { batchNo } of stalled) await batches.noteStall(store, batchNo, now)
}
