// The sorted digests of a total's rows: a run for each part and brand, until the last part has merged them. The digests are
// keyed: without the migration's key nobody learns a card from them.
import { byteas, texts } from '../columns.ts'
import type { Db } from '../pool.ts'

export const DIGEST_BYTES = 32
/** Runs are merged by the first byte of the digests, which are spread evenly. */
export const BUCKETS = 256

export interface DigestRun {
  /** Empty for cards whose brand isn't known. */
  brand: string
  /** Where the digests of each first byte begin; the last number is how many there are. */
  starts: readonly number[]
  digests: Buffer
}

export async function insertAll(db: Db, totalId: string, part: number, runs: readonly DigestRun[]): Promise<void> {
  if (runs.length === 0) return
  await db.query({
    text: `insert into tokenmill.manifest_run (
  total_id,
  part,
  brand,
  starts,
  digests
)
select
  $1,
  $2,
  v.brand,
  v.starts::integer[],
  v.digests
from unnest($3::text[], $4::text[], $5::bytea[]) as v(brand, starts, digests)`,
    values: [
      totalId,
      part,
      texts(runs.map(({ brand }) => brand)),
      texts(runs.map(({ starts }) => `{${starts.join(',')}}`)),
      byteas(runs.map(({ digests }) => digests)),
    ],
  })
}

/** All digests of the total that begin with this byte; within a slice they are sorted. */
export async function slicesOf(
  db: Db,
  totalId: string,
  bucket: number,
): Promise<Pick<DigestRun, 'brand' | 'digests'>[]> {
  const { rows } = await db.query<{ brand: string; digests: Buffer }>({
    name: 'digest-slices',
    text: `select brand, substring(digests
  from starts[$2 + 1] * ${DIGEST_BYTES} + 1
  for (starts[$2 + 2] - starts[$2 + 1]) * ${DIGEST_BYTES}) as digests
from tokenmill.manifest_run
where total_id = $1 and starts[$2 + 2] > starts[$2 + 1]`,
    values: [totalId, bucket],
  })
  return rows
}

export async function erase(db: Db, totalIds: readonly string[]): Promise<void> {
  await db.query({
    text: `delete from tokenmill.manifest_run
where total_id = any($1::uuid[])`,
    values: [`{${totalIds.join(',')}}`],
  })
}
