// How a row of a file ends. Workers decide seven outcomes; SKIPPED is decided by the reader of the file, and such a row
// is never sent.
import { type Counts, noCounts, OUTCOMES, type Outcome } from '../../src/job/outcome.ts'

/** Why a row isn't sent: it holds no card, `--only` doesn't list it, or the profile's filters leave it out. */
export type SkipReason = 'no_card' | 'not_listed' | 'filtered'

/** What travels with a card for its owner: network transaction ids, a transaction link id, and one of unusual form. */
export type OnFileTrait = 'nti' | 'tlid' | 'tlid_unusual'

export const FILE_OUTCOMES = [...OUTCOMES, 'SKIPPED'] as const
export type FileOutcome = Outcome | 'SKIPPED'
export type FileCounts = Counts & { SKIPPED: number }

/** How many rows ended with each reason: {outcome: {reason: rows}}. */
export type FileReasons = Partial<Record<FileOutcome, Record<string, number>>>

export function noFileCounts(): FileCounts {
  return { ...noCounts(), SKIPPED: 0 }
}

/** The sum of all counts. */
export function sumOfFile(counts: FileCounts): number {
  return FILE_OUTCOMES.reduce((sum, outcome) => sum + counts[outcome], 0)
}
