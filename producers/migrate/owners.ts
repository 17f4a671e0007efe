// Counts what became of the owners of cards, for checkpoint, manifest and summary.
import { z } from 'zod'
import type { FileRow } from '../rows/outcome/result-row.ts'

const Counts = z.record(z.string(), z.int().min(0))

/** Members of checkpoint and manifest; absent where the profile doesn't say whose cards the rows are. */
export const ownerCounts = {
  /** {reference outcome: rows} */
  references: Counts.optional(),
  /** How many of these rows have network transaction ids, a transaction link id, and one of unusual form. */
  on_file: Counts.optional(),
}

export interface OwnerCounts {
  references: Record<string, number>
  on_file: Record<string, number>
}

type Kept = { [name in keyof OwnerCounts]?: OwnerCounts[name] | undefined }

export function ownersSoFar(checkpoint: Kept | undefined): OwnerCounts {
  return { references: { ...checkpoint?.references }, on_file: { ...checkpoint?.on_file } }
}

type OwnedRow = Pick<FileRow, 'outcome' | 'onFile'> & { reference_outcome?: string | undefined }

export function countOwner({ references, on_file }: OwnerCounts, row: OwnedRow): void {
  if (row.outcome === 'SKIPPED' || row.reference_outcome === undefined) return
  add(references, row.reference_outcome)
  for (const trait of row.onFile ?? []) add(on_file, trait)
}

function add(counts: Record<string, number>, name: string): void {
  counts[name] = (counts[name] ?? 0) + 1
}
