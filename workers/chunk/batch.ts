// What a chunk asks its batch: is it one of it, may it begin now, and is that still so at its commit? What its records come
// to is decided elsewhere.
import { type Refusal, refuse } from '../../src/errors.ts'
import { agree, extentOf, type KnownExtent, type SaysExtent } from '../../src/job/envelope/batch-extent.ts'
import type { Batch } from '../../src/store/batch/batch-row.ts'
import * as batches from '../../src/store/batch/batches.ts'
import type { Db, Store } from '../../src/store/pool.ts'
import { holdsPossiblePan } from '../../src/token/possible-pan.ts'
import type { Deps } from '../deps.ts'
import { Outdated, Postponed, type Work } from '../line/work.ts'

/** How long a chunk of a paused batch is put off. */
export const PAUSED_MS = 15_000

/** How long to put the chunk off; undefined where its batch isn't paused. */
export async function pauseOf(
  { request, client }: Work<{ batch_id: string }>,
  { store }: Pick<Deps, 'store'>,
): Promise<number | undefined> {
  const batch = await batches.find(store, client.clientId, request.batch_id)
  return batch && isPaused(batch) ? PAUSED_MS : undefined
}

/** The chunk's batch, made or told its extent by this chunk where no other has; a refusal where the chunk can't be of it. */
export async function joinBatch(
  store: Store,
  batch: Omit<batches.NewBatch, 'extent' | 'limitChunks'>,
  says: SaysExtent,
): Promise<Batch | Refusal> {
  const said = extentOf(says)
  const contradicts = () => refuse('batch_extent', `body.request.${says.extent ? 'extent' : 'last'}`)
  if (said === 'contradiction') return contradicts()
  const extent = said && withoutPan(said)
  const opened = await batches.open(store, { ...batch, extent, limitChunks: says.limit })
  if (layoutText(opened.layout) !== layoutText(batch.layout)) return refuse('batch_layout', 'body.request.batch_id')
  const isTold = !extent || (opened.extent !== null && agree(opened.extent, extent))
  const joined = isTold ? opened : await batches.setExtent(store, opened.batchNo, extent)
  if (!joined) return contradicts()
  if (joined.extentChunks !== null && says.chunk >= joined.extentChunks)
    return refuse(joined.finishedAt === null ? 'batch_extent' : 'batch_finished', 'body.request.chunk')
  const limit = says.limit ?? null
  return joined.limitChunks === limit ? joined : batches.setLimit(store, joined.batchNo, limit)
}

/** The name of a file is shown and stored in clear. */
function withoutPan(extent: KnownExtent): KnownExtent {
  return extent.name !== null && holdsPossiblePan(extent.name) ? { ...extent, name: null } : extent
}

// PostgreSQL's jsonb keeps no order of keys.
const layoutText = (layout: Record<string, unknown>) =>
  JSON.stringify(Object.entries(layout).sort(([a], [b]) => (a < b ? -1 : 1)))

/**
 * Just before the commit: whether the batch may still go on with this chunk. From here to the commit it can't be cancelled,
 * paused or told another extent. Throws where the chunk has to come again, or to be prepared anew.
 */
export async function holdBatch(db: Db, seen: Batch, chunk: number): Promise<void> {
  const now = await batches.holdShared(db, seen.batchNo)
  if ((now.cancelledAt === null) !== (seen.cancelledAt === null))
    throw new Outdated('the batch was cancelled meanwhile')
  if (now.extentChunks !== null && chunk >= now.extentChunks) throw new Outdated('the batch has its extent meanwhile')
  if (isPaused(now)) throw new Postponed(PAUSED_MS)
}

function isPaused({ pausedAt, cancelledAt, finishedAt }: Batch): boolean {
  return pausedAt !== null && cancelledAt === null && finishedAt === null
}
