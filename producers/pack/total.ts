// The vault's half of the total that both sides of a migration compute. It asks the store for the total and waits:
// workers compute it from the sealed rows, not the process that read the file. docs/sign-off/total.md has the recipe.
import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { z } from 'zod'
import { MIGRATION_NAME } from '../../src/job/choices.ts'
import { TotalSum, TotalSums } from '../../src/job/system/manifest-total.ts'
import * as clients from '../../src/store/access/clients.ts'
import type { Batch } from '../../src/store/batch/batch-row.ts'
import { lastChunk } from '../../src/store/job/receipt-search.ts'
import type { Db, Store } from '../../src/store/pool.ts'
import * as digestRuns from '../../src/store/total/digest-runs.ts'
import * as totalKeys from '../../src/store/total/total-keys.ts'
import * as parts from '../../src/store/total/total-parts.ts'
import * as totals from '../../src/store/total/totals.ts'
import { FileError } from '../rows/file-error.ts'
import { findBatches } from './total-batches.ts'

/** A row that both sides leave out. */
export const TotalException = z.strictObject({
  batch_id: z.string(),
  line: z.int().min(1),
  reference: z.string().nullable(),
  /** One of `LEFT_OUT_REASONS`, or a word that isn't known here. */
  reason: z.string(),
})
export type TotalException = z.infer<typeof TotalException>

export const MigrationTotal = z.strictObject({
  /** The name of the migration, to which the key belongs. */
  migration: z.string().regex(MIGRATION_NAME),
  computed_at: z.iso.datetime(),
  ...TotalSum.shape,
  /** Only of brands with 1,000 rows or more. */
  by_brand: z.record(z.string(), TotalSum),
  /** By batch in the order they were given, then by line. */
  exceptions: z.array(TotalException),
  /** Rows of which the store doesn't know what expiry the file gave: they count with the stored expiry. */
})
export type MigrationTotal = z.infer<typeof MigrationTotal>

export interface TotalProgress {
  chunks: number
  chunksDone: number
}

export interface TotalDeps {
  store: Store
  /** Who asks, for the audit rows: what `actor()` of the command says. */
  actor: string
  signal?: AbortSignal | undefined
  patience?: Patience | undefined
}

/** How long a command waits for a total without progress. */
export interface Patience {
  /** The wait while no worker has sent a job of the total, ms. */
  unsentMs: number
  /** How long to wait, in ms, while no further part of the total is done. */
  stalledMs: number
}

export interface TotalAsk {
  migration: string
  /** Batch ids. */
  batches: readonly string[]
  /** Whose batches they are, if several clients have batches of these ids. */
  clientId?: string | undefined
  onProgress?: ((progress: TotalProgress) => void) | undefined
}

const LOOK_MS = 250
/** A running worker sends the job of a part within seconds; other jobs may come before it in the queue. */
const PATIENCE: Patience = { unsentMs: 120_000, stalledMs: 1_800_000 }

/** Throws a `FileError` that says why there is no total, and what to do. */
export async function computeTotal(deps: TotalDeps, ask: TotalAsk): Promise<MigrationTotal> {
  const { store, signal } = deps
  const { migration } = ask
  await checkKey(store, migration)
  const { batches, rows } = await findBatches(store, ask, signal)
  const { sums, exceptions } = await untilComputed(deps, ask, batches)
  checkRows(sums.rows + exceptions.length, rows)
  const computedAt = new Date().toISOString()
  return MigrationTotal.parse({
    migration,
    computed_at: computedAt,
    ...sums,
    exceptions,
  })
}

async function checkKey(store: Store, migration: string): Promise<void> {
  const found = await totalKeys.find(store, migration)
  if (!found)
    throw new FileError(
      'input',
      `The migration ${migration} has no key for its total.`,
      `Make it with \`tokenmill manifest total-key --migration ${migration}\`, and give it to the sender.`,
    )
  if (!found.key) throw signedOff(migration, found.destroyedAt)
}

function signedOff(migration: string, at: number | null): FileError {
  const when = at === null ? '' : ` on ${new Date(at).toISOString()}`
  return new FileError(
    'input',
    `The migration ${migration} was signed off${when}, which destroyed the key of its total.`,
    'Look into the pack that was signed; a further migration gets a name of its own.',
  )
}

/** Asks for the total. If the same is being computed for another process, waits with that one. */
async function openTotal({ store, actor }: TotalDeps, migration: string, batches: readonly Batch[]): Promise<string> {
  const batchNos = batches.map(({ batchNo }) => batchNo)
  const { rows, entityId } = await openParts(store, batches)
  const totalId = randomUUID()
  const isNew = await store.transaction(async db => {
    if (!(await totals.insert(db, { totalId, migration, batchNos, entityId, askedBy: actor }))) return false
    await parts.insertAll(
      db,
      rows.map(row => ({ ...row, totalId })),
    )
    return true
  })
  if (isNew) return totalId
  const open = await totals.findOpen(store, { migration, batchNos })
  return open ?? openTotal({ store, actor }, migration, batches)
}

interface Computed {
  sums: TotalSums
  exceptions: TotalException[]
}

interface Uncomputed extends parts.PartsProgress {
  /** Why the total will never be computed; null while it still may be. */
  refused: string | null
}

async function untilComputed(deps: TotalDeps, ask: TotalAsk, batches: readonly Batch[]): Promise<Computed> {
  for (;;) {
    const totalId = await openTotal(deps, ask.migration, batches)
    const computed = await untilEnded({ totalId, batches }, deps, ask)
    // Undefined: the total was removed, because no process has asked for it for an hour. This process may have been suspended.
    if (computed) return computed
  }
}

async function untilEnded(
  opened: { totalId: string; batches: readonly Batch[] },
  { store, signal, patience = PATIENCE }: TotalDeps,
  { migration, onProgress }: TotalAsk,
): Promise<Computed | undefined> {
  let told = -1
  let silentSince = performance.now()
  for (;;) {
    const seen = await look(store, opened)
    if (!seen || 'sums' in seen) return seen
    const { refused, chunks, chunksDone, isSent } = seen
    if (refused !== null) throw refusal(migration, refused)
    if (chunksDone !== told) {
      told = chunksDone
      silentSince = performance.now()
      onProgress?.({ chunks, chunksDone })
    }
    const silentMs = performance.now() - silentSince
    if (silentMs > (isSent ? patience.stalledMs : patience.unsentMs))
      await giveUp(store, opened.totalId, { migration, reason: isSent ? 'stalled' : 'unsent' })
    signal?.throwIfAborted()
    await pause(LOOK_MS, undefined, { signal })
  }
}

/** Notes that this process still waits, which locks the total's row: nothing that is read with it is removed meanwhile. */
function look(
  store: Store,
  { totalId, batches }: { totalId: string; batches: readonly Batch[] },
): Promise<Computed | Uncomputed | undefined> {
  return store.transaction(async db => {
    const total = await totals.want(db, totalId)
    if (!total) return undefined
    const { result, refused } = total
    const progress = await parts.progress(db, totalId)
    if (result === null) return { refused, ...progress }
    const exceptions = await readExceptions(db, totalId, batches)
    return { sums: TotalSums.parse(result), exceptions }
  })
}

type StuckReason = 'stalled' | 'unsent'

const STUCK: Record<StuckReason, { why: string; next: string }> = {
  stalled: {
    why: 'No part of it was done for long.',
    next: 'See whether its jobs wait behind others in the queue or fail (`tokenmill failed list`), then ask again: that begins a new total.',
  },
  unsent: {
    why: 'No worker takes it up.',
    next: 'Start workers of this release for bulk kinds, on a host with the file system/worker.jwk (`tokenmill schema upgrade` makes it).',
  },
}

/**
 * Ends the total with a reason, which every waiting command reads, so that the total can be requested again. Does
 * nothing if the total has just ended.
 */
async function giveUp(
  store: Store,
  totalId: string,
  { migration, reason }: { migration: string; reason: StuckReason },
): Promise<void> {
  await store.transaction(async db => {
    await digestRuns.erase(db, await totals.refuse(db, reason, { migration, totalId }))
  })
}

function refusal(migration: string, refused: string): FileError {
  if (refused !== 'stalled' && refused !== 'unsent') return signedOff(migration, null)
  const { why, next } = STUCK[refused]
  return new FileError('input', `The total of ${migration} does not come: ${why}`, next)
}

async function readExceptions(db: Db, totalId: string, batches: readonly Batch[]): Promise<TotalException[]> {
  const idOf = new Map(batches.map(({ batchNo, batchId }) => [batchNo, batchId]))
  const exceptions: TotalException[] = []
  for (let page = await parts.leftOutAfter(db, totalId, -1); page; ) {
    const { part, batchNo, leftOut } = page
    for (const { line, reference, reason } of leftOut)
      exceptions.push({ batch_id: idOf.get(batchNo) ?? '', line, reference, reason })
    page = await parts.leftOutAfter(db, totalId, part)
  }
  return exceptions
}

/** Throws if the rows that were looked at aren't all that had taken effect when the total was asked for. */
function checkRows(rows: number, expected: number): void {
  if (rows === expected) return
  throw new FileError(
    'input',
    `${rows} rows were looked at, and ${expected} rows of the batches took effect.`,
    'Records that had failed were worked meanwhile, or receipts were dropped: compute the total again.',
  )
}

/** Each part is a job; so a job takes seconds, and its digests about half a megabyte. */
const ROWS_PER_PART = 20_000

/** The parts, the last of which merges the others, and the entity in whose name their jobs are sent. */
async function openParts(
  db: Db,
  batches: readonly Batch[],
): Promise<{ rows: Omit<parts.Part, 'totalId'>[]; entityId: string }> {
  const rows: Omit<parts.Part, 'totalId'>[] = []
  for (const { batchNo, chunkRecords } of batches) {
    const chunks = ((await lastChunk(db, batchNo)) ?? -1) + 1
    const perPart = Math.max(1, Math.floor(ROWS_PER_PART / chunkRecords))
    for (let chunkFrom = 0; chunkFrom < chunks; chunkFrom += perPart) {
      const chunkTo = Math.min(chunkFrom + perPart, chunks)
      rows.push({ part: rows.length, batchNo, chunkFrom, chunkTo })
    }
  }
  rows.push({ part: rows.length, batchNo: null, chunkFrom: 0, chunkTo: 0 })
  return { rows, entityId: await entityOf(db, batches) }
}

async function entityOf(db: Db, batches: readonly Batch[]): Promise<string> {
  for (const { clientId } of batches) {
    const [entityId] = (await clients.find(db, clientId))?.entities ?? []
    if (entityId !== undefined) return entityId
  }
  throw new FileError('usage', 'The client of these batches acts for no entity.', 'Name batches of another client.')
}
