// Sorts the digests of a part's rows, for each brand, and marks where each first byte begins.
import { BUCKETS, type DigestRun } from '../../src/store/total/digest-runs.ts'

export interface SortedRuns {
  add(brand: string, digest: Buffer): void
  runs(): DigestRun[]
}

export function openRuns(): SortedRuns {
  const byBrand = new Map<string, Buffer[]>()
  return {
    add(brand, digest) {
      const known = byBrand.get(brand)
      if (known) known.push(digest)
      else byBrand.set(brand, [digest])
    },
    runs: () => [...byBrand].map(([brand, digests]) => runOf(brand, digests.sort(Buffer.compare))),
  }
}

function runOf(brand: string, sorted: readonly Buffer[]): DigestRun {
  const counts = new Array<number>(BUCKETS).fill(0)
  for (const [first = 0] of sorted) counts[first] = (counts[first] ?? 0) + 1
  const starts = [0]
  for (const count of counts) starts.push((starts.at(-1) ?? 0) + count)
  return { brand, starts, digests: Buffer.concat(sorted) }
}
