// Sums of a batch's counts that its pages show.
import type { SeenBatch } from '../../../src/store/console/batches.ts'

/** The rows that took no effect because of a rule or a fault: REJECTED and FAILED. */
export function refusedOf({ counts }: Pick<SeenBatch, 'counts'>): number {
  return counts.REJECTED + counts.FAILED
}
