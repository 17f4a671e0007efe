// Finds pairs of rows that were swapped, among the rows whose hashes are wrong: their contents were swapped, or their numbers.
import type { ChainedRow } from '../store/access/audits.ts'
import type { Finding } from './finding.ts'
import { hashRow } from './row-hash.ts'

/** A row whose hash isn't the hash of its text and of `before`, the hash of the row before it. */
export interface Misfit {
  row: ChainedRow
  before: Buffer
}

interface Swaps {
  findings: Finding[]
  /** Numbers of rows that weren't changed: their hash is wrong only because another row stands before them. */
  whole: Set<number>
}

/** Among more rows this file doesn't look for pairs, because each is compared with each. */
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

/** Whether the hash of each row would be right if the row had the other's number. */
function haveEachOthersNumbers(one: Misfit, other: Misfit): boolean {
  // If the rows are neighbours, the one that is second now was the first before.
  const isNext = other.row.seq === one.row.seq + 1
  const before = isNext ? other.row.hash : other.before
  return (
    hashRow(before, { ...one.row, seq: other.row.seq }).equals(one.row.hash) &&
    hashRow(one.before, { ...other.row, seq: one.row.seq }).equals(other.row.hash)
  )
}

/** The numbers of the rows right after the two, whose hashes follow one of the swapped rows. */
function followers(misfits: readonly Misfit[], one: Misfit, other: Misfit): number[] {
  return misfits
    .filter(({ row }) => row.seq === one.row.seq + 1 || row.seq === other.row.seq + 1)
    .filter(({ row }) => [one, other].some(({ row: { hash } }) => hashRow(hash, row).equals(row.hash)))
    .map(({ row }) => row.seq)
}
