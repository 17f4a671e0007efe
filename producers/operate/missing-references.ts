// Which cards that were expected from a provider have no token, and why: a comparison of a list of ids with what the store
// knows. It changes nothing.
import { unpack } from '../../src/job/chunk-outcomes.ts'
import { tookEffect } from '../../src/job/outcome.ts'
import * as batchList from '../../src/store/batch/batch-list.ts'
import type { Batch } from '../../src/store/batch/batch-row.ts'
import * as receiptSearch from '../../src/store/job/receipt-search.ts'
import type { Db } from '../../src/store/pool.ts'
import * as released from '../../src/store/reference/released-references.ts'
import { pagesOf } from '../../src/store/reference/shown-references.ts'
import type { OwnerId } from '../../src/token/on-file.ts'

/**
 * `not_kept`: its last row took effect, but named no owner. `rejected`, `failed`, `cancelled`: so ended its last row. A
 * later release or row outranks an earlier one.
 */
export const MISSING_WHY = ['never_came', 'released', 'rejected', 'failed', 'cancelled', 'not_kept'] as const

export interface MissingReference {
  cardId: string
  why: (typeof MISSING_WHY)[number]
  /** ms since the epoch. */
  at?: number
  /** Why it was released, or its row's reason. */
  reason?: string | undefined
  batchId?: string
  line?: number
}

export interface ExpectedReferences {
  ids: ReadonlySet<string>
  of: Pick<OwnerId, 'tokenScope' | 'provider' | 'providerAccount'>
  /** The keyed hash of a card's ids without its customer's. */
  hashOf: (cardId: string) => Buffer
  tell?: (line: string) => void
}

/** In the order of `ids`. */
export async function findMissing(db: Db, expected: ExpectedReferences): Promise<MissingReference[]> {
  const { ids, of, hashOf, tell } = expected
  const missing = new Set(ids)
  const { tokenScope } = of
  for await (const page of pagesOf(db, { tokenScope, of })) for (const { cardId } of page) missing.delete(cardId)
  tell?.(`${missing.size} of ${ids.size} have no token`)
  if (missing.size === 0) return []
  const releases = await findReleased(db, [...missing], hashOf)
  const rows = await findLastRows(db, tokenScope, missing, tell)
  return [...missing].map(cardId => {
    const release = releases.get(cardId)
    const row = rows.get(cardId)
    if (row && (row.at ?? 0) > (release?.at ?? 0)) return row
    return release ?? { cardId, why: 'never_came' }
  })
}

const HASHES = 1_000

async function findReleased(
  db: Db,
  cardIds: readonly string[],
  hashOf: ExpectedReferences['hashOf'],
): Promise<Map<string, MissingReference>> {
  const found = new Map<string, MissingReference>()
  for (let start = 0; start < cardIds.length; start += HASHES) {
    const hashed = cardIds.slice(start, start + HASHES).map(cardId => ({ cardId, hash: hashOf(cardId) }))
    const known = await released.findByCards(
      db,
      hashed.map(({ hash }) => hash),
    )
    for (const { cardId, hash } of hashed) {
      const release = known.get(hash.toString('hex'))
      if (!release) continue
      const { cause, releasedAt: at } = release
      found.set(cardId, { cardId, why: 'released', at, reason: cause.toLowerCase() })
    }
  }
  return found
}

/** What the last row of each said, as far as receipts still tell it: the references of rows are the ids of cards. */
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

const BATCHES = 100

/** Newest first. */
async function* batchesOf(db: Db, tokenScope: string): AsyncGenerator<Batch> {
  const accepts = (batch: Batch) => batch.tokenScope === tokenScope && batch.recordKind === 'token-create'
  for (let before = Number.MAX_SAFE_INTEGER; ; ) {
    const page = await batchList.list(db, { accepts, before, limit: BATCHES })
    yield* page
    const last = page.at(-1)
    if (!last || page.length < BATCHES) return
    before = last.batchNo
  }
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
