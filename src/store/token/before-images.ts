// Sealed copies of rows as they were before an interactive job changed them; a reversal restores them. This file
// doesn't know what the copies hold.
import { byteas, plains } from '../columns.ts'
import type { Db } from '../pool.ts'

export interface BeforeImage {
  /** The receipt of the job that changed the row. */
  receiptId: string
  tokenId: string
  sealed: Buffer
  keyVersion: number
  /** The version under which the row in the copy is sealed; null if it keeps no PAN. */
  sealVersion: number | null
}

/** How long the copies are kept: no reversal reaches further back. */
export const BEFORE_IMAGE_HOURS = 24

export async function insertAll(db: Db, images: readonly BeforeImage[]): Promise<void> {
  if (images.length === 0) return
  const sorted = images.toSorted((a, b) => (a.receiptId < b.receiptId ? -1 : 1))
  await db.query({
    name: 'before-images-insert',
    text: `insert into tokenmill.before_image (
  receipt_id,
  token_id,
  sealed,
  key_version,
  seal_version
)
select
  v.receipt_id,
  v.token_id,
  v.sealed,
  v.key_version,
  v.seal_version
from unnest(
  $1::uuid[],
  $2::uuid[],
  $3::bytea[],
  $4::smallint[],
  $5::smallint[]
)
  as v(
    receipt_id,
    token_id,
    sealed,
    key_version,
    seal_version
  )`,
    values: [
      plains(sorted.map(({ receiptId }) => receiptId)),
      plains(sorted.map(({ tokenId }) => tokenId)),
      byteas(sorted.map(({ sealed }) => sealed)),
      plains(sorted.map(({ keyVersion }) => keyVersion)),
      plains(sorted.map(({ sealVersion }) => sealVersion)),
    ],
  })
}

export async function find(db: Db, receiptId: string): Promise<BeforeImage | undefined> {
  const { rows } = await db.query<BeforeImage>({
    text: `select
  receipt_id as "receiptId",
  token_id as "tokenId",
  sealed,
  key_version as "keyVersion",
  seal_version as "sealVersion"
from tokenmill.before_image
where receipt_id = $1`,
    values: [receiptId],
  })
  return rows[0]
}

/** Erases the copies of deleted tokens. */
export async function eraseOf(db: Db, tokenIds: readonly string[]): Promise<void> {
  if (tokenIds.length === 0) return
  await db.query({
    name: 'before-image-erase',
    text: `delete from tokenmill.before_image as b
using unnest($1::uuid[]) as gone(id)
where b.token_id = gone.id`,
    values: [plains(tokenIds)],
  })
}

/** Erases up to `limit` copies that are too old for a reversal. Returns how many. */
export async function eraseOld(db: Db, now: number, limit: number): Promise<number> {
  const { count } = await db.query({
    text: `delete from tokenmill.before_image
  where ctid = any(array(
  select ctid
  from tokenmill.before_image
  where created_at < $1
  order by created_at
  limit $2
))`,
    values: [new Date(now - BEFORE_IMAGE_HOURS * 3_600_000), limit],
  })
  return count
}
