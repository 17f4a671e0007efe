// Which cards that were expected from a provider have no token, and why: a comparison of a list of ids with what the store
// knows. It changes nothing.
import { systemClock } from '../../src/clock.ts'
import { unpack } from '../../src/job/chunk-outcomes.ts'
import { tookEffect } from '../../src/job/outcome.ts'
import * as batchList from '../../src/store/batch/batch-list.ts'
import { type Batch, WHOLE_BATCH } from '../../src/store/batch/batch-row.ts'
import * as receiptSearch from '../../src/store/job/receipt-search.ts'
import type { Db } from '../../src/store/pool.ts'
import { pagesOf } from '../../src/store/reference/reference-views.ts'
import * as released from '../../src/store/reference/released-references.ts'
import { ALL } from '../../src/store/sight.ts'
import type { OwnerId } from '../../src/token/on-file.ts'

/**
 * `not_kept`: its last row took effect, but named no owner. `rejected`, `failed`, `cancelled`: its last row ended so.
 * `skipped`: it was never sent, as results files say. A later release or row outranks an earlier one, and what the
 * store knows outranks results files.
 */
export const MISSING_WHY = ['never_came', 'released', 'rejected', 'failed', 'cancelled', 'not_kept', 'skipped'] as const

export interface MissingReference {
  cardId: string
  why: (typeof MISSING_WHY)[number]
  /** ms since the epoch. */
  at?: number
  /** Why it was released, or its row's reason. */
  reason?: string | undefined
  batchId?: string
  line?: number
  /** The results file in which the row is. */
  file?: string
}

/** What results files say of a row. */
export interface WrittenRow {
  file: string
  line: number
  outcome: string
  reason: string | undefined
}

export interface ExpectedReferences {
  ids: ReadonlySet<string>
  of: Pick<OwnerId, 'tokenScope' | 'provider' | 'providerAccount'>
  /** The keyed hashes of a card's ids without its customer's, under each of `versions` of the key. */
  hashesOf: (cardId: string) => Buffer[]
  versions: readonly number[]
  /** What results files say of these cards, by id. */
  written?: (cardIds: ReadonlySet<string>) => Promise<ReadonlyMap<string, WrittenRow>>
  tell?: (line: string) => void
}

/** In the order of `ids`. */
export async function findMissing(db: Db, expected: ExpectedReferences): Promise<MissingReference[]> {
  const { ids, of, written, tell } = expected
  const missing = new Set(ids)
  const { tokenScope } = of
  for await (const page of pagesOf(db, { tokenScope, of })) for (const { cardId } of page) missing.delete(cardId)
  tell?.(`${missing.size} of ${ids.size} have no token`)
  if (missing.size === 0) return []
  const releases = await findReleased(db, [...missing], expected)
  const rows = await findLastRows(db, tokenScope, missing, tell)
  const ends = await written?.(missing)
  return [...missing].map(cardId => {
    const release = releases.get(cardId)
    const row = rows.get(cardId)
    if (row && (row.at ?? 0) > (release?.at ?? 0)) return row
    return release ?? writtenOf(cardId, ends?.get(cardId)) ?? { cardId, why: 'never_came' }
  })
}

function writtenOf(cardId: string, end: WrittenRow | undefined): MissingReference | undefined {
  if (!end) return undefined
  const { file, line, outcome, reason } = end
  return { cardId, why: outcome === 'SKIPPED' ? 'skipped' : whyOf(outcome), reason, line, file }
}

const HASHES = 1_000

async function findReleased(
  db: Db,
  cardIds: readonly string[],
  { hashesOf, versions }: Pick<ExpectedReferences, 'hashesOf' | 'versions'>,
): Promise<Map<string, MissingReference>> {
  const found = new Map<string, MissingReference>()
  for (let start = 0; start < cardIds.length; start += HASHES) {
    const sought = cardIds.slice(start, start + HASHES).map(key => ({ key, hashes: hashesOf(key) }))
    const known = await released.findByCards(db, sought, versions)
    for (const [cardId, { cause, releasedAt: at }] of known)
      found.set(cardId, { cardId, why: 'released', at, reason: cause.toLowerCase() })
  }
  return found
}

/**
 * The outcome of the last row of each card's id, if its receipt is still there: such rows have the ids of cards as
 * references.
 */
async function findLastRows(
  db: Db,
  tokenScope: string,
  missing: ReadonlySet<string>,
  tell: ExpectedReferences['tell'],
): Promise<Map<string, MissingReference>> {
  const found = new Map<string, MissingReference>()
  const open = new Set(missing)
  for await (const batch of batchesOf(db, tokenScope)) {
    if (open.size === 0) break
    tell?.(`looking through batch ${batch.batchId} ...`)
    const ofBatch = await rowsOf(db, batch, open)
    for (const [cardId, row] of ofBatch) {
      found.set(cardId, row)
      open.delete(cardId)
    }
  }
  return found
}

/** Newest first. */
async function* batchesOf(db: Db, tokenScope: string): AsyncGenerator<Batch> {
  for await (const page of batchList.listPages(ALL, db, { now: systemClock() }, WHOLE_BATCH))
    yield* page.filter(batch => batch.tokenScope === tokenScope && batch.recordKind === 'token-create')
}

const CHUNKS = 50

async function rowsOf(
  db: Db,
  { batchNo, batchId }: Batch,
  wanted: ReadonlySet<string>,
): Promise<Map<string, MissingReference>> {
  const found = new Map<string, MissingReference>()
  for (let from = 0; ; ) {
    const chunks = await receiptSearch.chunksFrom(db, batchNo, from, CHUNKS)
    for (const { completedAt: at, outcomes } of chunks) {
      for (const { reference, outcome, reason, line } of unpack(outcomes)) {
        if (reference === undefined || !wanted.has(reference)) continue
        found.set(reference, { cardId: reference, why: whyOf(outcome), at, reason, batchId, line })
      }
    }
    const last = chunks.at(-1)
    if (!last || chunks.length < CHUNKS) return found
    from = last.chunk + 1
  }
}

function whyOf(outcome: string): MissingReference['why'] {
  if (tookEffect(outcome)) return 'not_kept'
  return outcome === 'REJECTED' ? 'rejected' : outcome === 'CANCELLED' ? 'cancelled' : 'failed'
}
