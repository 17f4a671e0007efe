// The checks of a chunk against its batch: whether it belongs to the batch, whether it may begin now, and whether that
// is still so at its commit. Its records are decided elsewhere.
import { type Refusal, refuse } from '../../src/errors.ts'
import { agree, extentOf, type KnownExtent, type SaysExtent } from '../../src/job/envelope/batch-extent.ts'
import { batchLayout } from '../../src/job/token-batch.ts'
import type { Batch } from '../../src/store/batch/batch-row.ts'
import * as batches from '../../src/store/batch/batches.ts'
import type { Db, Store } from '../../src/store/pool.ts'
import { holdsPossiblePan } from '../../src/token/possible-pan.ts'
import type { Deps } from '../deps.ts'
import { Outdated, Postponed, type Work } from '../work.ts'
import type { ChunkContext } from './chunk.ts'

/** How long a chunk of a paused batch is delayed. */
export const PAUSED_MS = 15_000

/** How long to delay the chunk; undefined if its batch isn't paused. */
export async function pauseOf(
  { request, client }: Work<{ batch_id: string }>,
  { store }: Pick<Deps, 'store'>,
): Promise<number | undefined> {
  const batch = await batches.find(store, client.clientId, request.batch_id)
  return batch && isPaused(batch) ? PAUSED_MS : undefined
}

/**
 * The chunk's batch, which the first chunk inserts. Chunks of several entities make it a batch of none. Sets the batch's extent if the chunk says it and no other chunk did
 * before. A refusal if the chunk can't belong to the batch.
 */
export async function joinBatch(
  store: Store,
  batch: Omit<batches.NewBatch, 'extent' | 'limitChunks'>,
  says: SaysExtent,
): Promise<Batch | Refusal> {
  const said = extentOf(says)
  const contradicts = () => refuse('batch_extent', `body.request.${says.extent ? 'extent' : 'last'}`)
  if (said === 'contradiction') return contradicts()
  const extent = said && withoutPan(said)
  const found = await batches.open(store, { ...batch, extent, limitChunks: says.limit })
  if (layoutText(found.layout) !== layoutText(batch.layout)) return refuse('batch_layout', 'body.request.batch_id')
  const isOfOne = found.entityId === null || found.entityId === batch.entityId
  const opened = isOfOne ? found : await batches.dropEntity(store, found.batchNo)
  const isTold = !extent || (opened.extent !== null && agree(opened.extent, extent))
  const joined = isTold ? opened : await batches.setExtent(store, opened.batchNo, extent)
  if (!joined) return contradicts()
  if (joined.extentChunks !== null && says.chunk >= joined.extentChunks)
    return refuse(joined.finishedAt === null ? 'batch_extent' : 'batch_finished', 'body.request.chunk')
  const limit = says.limit ?? null
  return joined.limitChunks === limit ? joined : batches.setLimit(store, joined.batchNo, limit)
}

/**
 * Takes the end of the batch from a chunk that was already answered: a sender that reads from a pipe learns late that
 * no other chunk follows. Nothing happens if the batch has an extent, or chunks beyond this one.
 */
export async function takeLast(
  { request, client }: Work<{ batch_id: string } & SaysExtent>,
  { store, progress }: Pick<Deps, 'store' | 'progress'>,
): Promise<void> {
  if (!request.last || request.extent) return
  const said = extentOf(request)
  const batch = await batches.find(store, client.clientId, request.batch_id)
  if (!batch || batch.extentChunks !== null || !said || said === 'contradiction') return
  if (await batches.setExtent(store, batch.batchNo, said)) progress.note(batch.batchNo)
}

interface Marked {
  mark: { batchNo: number } | null
}

/** The context of a chunk that has read these tokens and references: it knows the earlier batches of its file that wrote them. */
export async function withFormer(
  { stored, known }: { stored: ReadonlyMap<string, Marked>; known: ReadonlyMap<string, Marked> },
  context: ChunkContext,
  { store }: Pick<Deps, 'store'>,
): Promise<ChunkContext> {
  const { work, batch } = context
  const { extent } = work.request
  const numbers = new Set<number>()
  for (const { mark } of [...stored.values(), ...known.values()]) if (mark) numbers.add(mark.batchNo)
  numbers.delete(batch?.batchNo ?? 0)
  if (extent?.sha256 === undefined || numbers.size === 0) return context
  const { on_conflict: onConflict } = batchLayout(work.request)
  const file = { clientId: work.client.clientId, sha256: extent.sha256, onConflict }
  return { ...context, former: await batches.findOfFile(store, [...numbers], file) }
}

/** The extent without a file name that could be a card number, because that name is shown and stored in clear. */
function withoutPan(extent: KnownExtent): KnownExtent {
  return extent.name !== null && holdsPossiblePan(extent.name) ? { ...extent, name: null } : extent
}

// jsonb doesn't keep the order of keys, so they are sorted.
const layoutText = (layout: Record<string, unknown>) =>
  JSON.stringify(Object.entries(layout).sort(([a], [b]) => (a < b ? -1 : 1)))

/**
 * Called just before the commit: holds the batch's row, so that until the commit nobody cancels or pauses the batch or
 * sets its extent. Throws `Postponed` if the batch is paused. Throws `Outdated` if the batch was cancelled since the
 * chunk was prepared, or got an extent that excludes the chunk.
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
