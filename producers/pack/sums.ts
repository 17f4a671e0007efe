// Adds up the counts of a pack's batches, and checks that counts agree which the pack holds in several places.
import { tookEffect } from '../../src/job/outcome.ts'
import { FILE_OUTCOMES, noFileCounts, sumOfFile } from '../rows/file-outcome.ts'
import { canonicalText } from './canonical.ts'
import type { Pack, PackedBatch } from './pack.ts'

type Sums = Pick<Pack, 'rows' | 'counts' | 'repairs' | 'references' | 'on_file'>
type Counts = Record<string, number>

export function sumsOf(batches: readonly PackedBatch[]): Sums {
  const manifests = batches.map(({ manifest }) => manifest)
  const counts = noFileCounts()
  for (const manifest of manifests) for (const name of FILE_OUTCOMES) counts[name] += manifest.counts[name]
  const kept = (name: 'references' | 'on_file') => manifests.flatMap((one): Counts[] => (one[name] ? [one[name]] : []))
  const [references, onFile] = [kept('references'), kept('on_file')]
  return {
    rows: sum(manifests.map(({ rows }) => rows)),
    counts,
    repairs: added(manifests.map(({ repairs }) => repairs)),
    ...(references.length > 0 && { references: added(references) }),
    ...(onFile.length > 0 && { on_file: added(onFile) }),
  }
}

function added(all: readonly Counts[]): Counts {
  const sums: Counts = {}
  for (const counts of all) for (const [name, n] of Object.entries(counts)) sums[name] = (sums[name] ?? 0) + n
  return sums
}

/** Which counts must agree, and how that is checked. */
const AGREEMENTS: readonly { of: string; holds: (pack: Pack) => boolean }[] = [
  {
    of: 'its sums and those of the manifests',
    holds: ({ rows, counts, repairs, references, on_file, batches }) =>
      canonicalText({ rows, counts, repairs, references, on_file }) === canonicalText(sumsOf(batches)),
  },
  { of: 'its rows and their outcomes', holds: ({ rows, counts }) => rows === sumOfFile(counts) },
  {
    of: 'its outcomes and the cells',
    holds: ({ counts, cells }) =>
      FILE_OUTCOMES.every(name => counts[name] === sum(cells.map(cell => (cell.outcome === name ? cell.rows : 0)))),
  },
  {
    of: 'its outcomes and the exceptions',
    holds: ({ counts: { REJECTED, FAILED, CANCELLED }, exceptions, total }) =>
      exceptions.rows === REJECTED + FAILED + CANCELLED + leftOut(total),
  },
  {
    of: 'its exceptions and their decisions',
    holds: ({ exceptions: { rows, decided, open, by_decision: how } }) =>
      rows === decided + open && decided === sum(how.map(one => one.rows)),
  },
  {
    of: 'its outcomes and the rows of the vault’s total',
    holds: ({ counts, total }) =>
      !total || total.vault.rows + leftOut(total) === sum(FILE_OUTCOMES.filter(tookEffect).map(name => counts[name])),
  },
]

/** The name of the first two counts that don't agree; undefined if all agree. */
export function contradictionOf(pack: Pack): string | undefined {
  return AGREEMENTS.find(({ holds }) => !holds(pack))?.of
}

const leftOut = (total: Pack['total']) => total?.vault.exceptions.rows ?? 0

const sum = (all: readonly number[]) => all.reduce((total, n) => total + n, 0)
