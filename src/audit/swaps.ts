// Finds, among rows whose hashes don't fit, those that were swapped: their contents, or their numbers.
import type { ChainedRow } from '../store/access/audits.ts'
import type { Finding } from './finding.ts'
import { hashRow } from './row-hash.ts'

/** A row whose hash isn't over the hash `before` it and its text. */
export interface Misfit {
  row: ChainedRow
  before: Buffer
}

interface Swaps {
  findings: Finding[]
  /** Numbers of rows that are whole: only the row before them isn't theirs. */
  whole: Set<number>
}

/** Among more rows nobody looks for pairs. */
const MISFITS_MAX = 200

export function findSwaps(misfits: readonly Misfit[]): Swaps {
  const swaps: Swaps = { findings: [], whole: new Set() }
  if (misfits.length > MISFITS_MAX) return swaps
  for (const [index, one] of misfits.entries())
    for (const other of misfits.slice(index + 1)) {
      const hadNumbers = haveEachOthersNumbers(one, other)
      if (!hadNumbers && !haveEachOthersContents(one, other)) continue
      const { seq } = one.row
      const says = `rows ${seq} and ${other.row.seq} were swapped`
      swaps.findings.push({ found: 'swapped', seq, with: other.row.seq, says })
      if (hadNumbers) for (const whole of followers(misfits, one, other)) swaps.whole.add(whole)
    }
  return swaps
}

function haveEachOthersContents(one: Misfit, other: Misfit): boolean {
  return (
    hashRow(other.before, { ...one.row, seq: other.row.seq }).equals(other.row.hash) &&
    hashRow(one.before, { ...other.row, seq: one.row.seq }).equals(one.row.hash)
  )
}

/** Each row is whole in the other's place, with its own hash and MAC. */
function haveEachOthersNumbers(one: Misfit, other: Misfit): boolean {
  // Between neighbours the hash before the second is that of the row which stands second now.
  const isNext = other.row.seq === one.row.seq + 1
  const before = isNext ? other.row.hash : other.before
  return (
    hashRow(before, { ...one.row, seq: other.row.seq }).equals(one.row.hash) &&
    hashRow(one.before, { ...other.row, seq: one.row.seq }).equals(other.row.hash)
  )
}

/** The rows behind the two that follow what stood there before. */
function followers(misfits: readonly Misfit[], one: Misfit, other: Misfit): number[] {
  return misfits
    .filter(({ row }) => row.seq === one.row.seq + 1 || row.seq === other.row.seq + 1)
    .filter(({ row }) => [one, other].some(({ row: { hash } }) => hashRow(hash, row).equals(row.hash)))
    .map(({ row }) => row.seq)
}
