// Source references that were released: a keyed hash of each owner's ids, when and why. The ids themselves are erased.
import { Fault } from '../../errors.ts'
import { byteas, listOf, plains } from '../columns.ts'
import type { Db } from '../pool.ts'

export type ReleaseCause = 'RELEASED' | 'TOKEN_DELETED'

export interface ReleasedReference {
  ownerHash: Buffer
  /** The same hash, but made without the customer's id. */
  cardHash: Buffer
  /** The version of the data key `owner` that made both. */
  keyVersion: number
  cause: ReleaseCause
  /** The receipt of the job that released the reference. */
  receiptId: string
  /** The number of the reference that was released. */
  referenceNo: number
  /** ms since the epoch. */
  releasedAt: number
}

export async function insertAll(db: Db, released: readonly ReleasedReference[]): Promise<void> {
  if (released.length === 0) return
  const sorted = released.toSorted((a, b) => Buffer.compare(a.ownerHash, b.ownerHash))
  await db.query({
    name: 'released-references-insert',
    text: `insert into tokenmill.released_reference (
  owner_hash,
  card_hash,
  released_at,
  cause,
  receipt_id,
  reference_no,
  key_version
)
select
  v.hash,
  v.card,
  v.at,
  v.cause,
  v.receipt,
  v.no,
  v.version
from unnest(
  $1::bytea[],
  $2::bytea[],
  $3::timestamptz[],
  $4::text[],
  $5::uuid[],
  $6::bigint[],
  $7::smallint[]
)
  as v(
    hash,
    card,
    at,
    cause,
    receipt,
    no,
    version
  )
on conflict do nothing`,
    values: [
      byteas(sorted.map(({ ownerHash }) => ownerHash)),
      byteas(sorted.map(({ cardHash }) => cardHash)),
      plains(sorted.map(({ releasedAt }) => `"${new Date(releasedAt).toISOString()}"`)),
      plains(sorted.map(({ cause }) => cause)),
      plains(sorted.map(({ receiptId }) => receiptId)),
      plains(sorted.map(({ referenceNo }) => referenceNo)),
      plains(sorted.map(({ keyVersion }) => keyVersion)),
    ],
  })
}

export interface Released {
  cause: ReleaseCause
  /** ms since the epoch. */
  releasedAt: number
}

/** The hashes of one owner's ids, or of one card's, under every version of the key that the caller holds. */
export interface SoughtHashes {
  key: string
  hashes: readonly Buffer[]
}

/**
 * When and why each owner was released last, by `key`. Throws `Fault('key_unavailable')` if the store has a newer
 * version of the key than `versions`: rows under it would be missed.
 */
export function find(db: Db, sought: readonly SoughtHashes[], versions: readonly number[]) {
  return findLast(db, 'owner_hash', sought, versions)
}

/** When and why a card was released last, whoever its customer was. Throws as `find`. */
export function findByCards(db: Db, sought: readonly SoughtHashes[], versions: readonly number[]) {
  return findLast(db, 'card_hash', sought, versions)
}

interface Row {
  hash: Buffer
  cause: ReleaseCause | null
  releasedAt: number | null
}

async function findLast(
  db: Db,
  by: 'owner_hash' | 'card_hash',
  sought: readonly SoughtHashes[],
  versions: readonly number[],
): Promise<Map<string, Released>> {
  if (sought.length === 0) return new Map()
  // The first row names the newest version, by the same snapshot: a key is stored before any row names it.
  const { rows } = await db.query<Row & { newest: number | null }>({
    name: `released-references-by-${by}`,
    text: `select
  null::bytea as hash,
  null::text as cause,
  null::timestamptz as "releasedAt",
  max(version) as newest
from tokenmill.data_key
where purpose = 'owner' and state <> 'DESTROYED'
union all
select
  found.hash,
  found.cause,
  found.released_at,
  null
from unnest(${listOf(1, 'bytea')}) as wanted(hash)
cross join lateral (
  select ${by} as hash, cause, released_at
  from tokenmill.released_reference
  where ${by} = wanted.hash
  order by released_at desc
  limit 1
) as found`,
    values: [byteas(sought.flatMap(({ hashes }) => hashes))],
  })
  const newest = Math.max(...rows.map(row => row.newest ?? 0))
  if (newest > Math.max(...versions)) throw new Fault('key_unavailable')
  const found = new Map(rows.flatMap(row => (row.hash ? [[row.hash.toString('hex'), row] as const] : [])))
  return new Map(
    sought.flatMap(({ key, hashes }) => {
      const last = latest(hashes.map(hash => found.get(hash.toString('hex'))))
      return last ? [[key, last] as const] : []
    }),
  )
}

function latest(rows: readonly (Row | undefined)[]): Released | undefined {
  let last: Released | undefined
  for (const row of rows)
    if (row?.cause && row.releasedAt !== null && row.releasedAt > (last?.releasedAt ?? -1))
      last = { cause: row.cause, releasedAt: row.releasedAt }
  return last
}
