// Merges the runs of a total and hashes them, first byte by first byte, so that memory holds only the digests of one
// first byte: of ten million rows about forty thousand.
import { createHash, type Hash } from 'node:crypto'
import { BRAND_ROWS_MIN, type TotalSum, type TotalSums } from '../../src/job/system/manifest-total.ts'
import type { Db } from '../../src/store/pool.ts'
import { BUCKETS, DIGEST_BYTES, slicesOf } from '../../src/store/total/digest-runs.ts'

export async function mergeRuns(db: Db, totalId: string): Promise<TotalSums> {
  const whole = openSum()
  const byBrand = new Map<string, ReturnType<typeof openSum>>()
  for (let bucket = 0; bucket < BUCKETS; bucket += 1) {
    const slices = Map.groupBy(await slicesOf(db, totalId, bucket), ({ brand }) => brand)
    const all: string[] = []
    for (const [brand, ofBrand] of slices) {
      const digests = ofBrand.flatMap(slice => digestsOf(slice.digests)).sort()
      const sum = byBrand.get(brand) ?? openSum()
      sum.add(digests)
      byBrand.set(brand, sum)
      all.push(...digests)
    }
    whole.add(all.sort())
  }
  const brands = [...byBrand]
    .filter(([brand, { rows }]) => brand !== '' && rows() >= BRAND_ROWS_MIN)
    .sort(([one], [other]) => (one < other ? -1 : 1))
  return {
    ...whole.end(),
    by_brand: Object.fromEntries(brands.map(([brand, sum]) => [brand, sum.end()])),
  }
}

/** In lower-case hex, whose order as texts is the order of the bytes. */
function digestsOf(slice: Buffer): string[] {
  const digests: string[] = []
  for (let at = 0; at < slice.length; at += DIGEST_BYTES) digests.push(slice.toString('hex', at, at + DIGEST_BYTES))
  return digests
}

function openSum() {
  const hash: Hash = createHash('sha256')
  let rows = 0
  return {
    rows: () => rows,
    add(sorted: readonly string[]): void {
      if (sorted.length === 0) return
      rows += sorted.length
      hash.update(`${sorted.join('\n')}\n`, 'latin1')
    },
    end: (): TotalSum => ({ rows, sha256: hash.digest('hex') }),
  }
}
