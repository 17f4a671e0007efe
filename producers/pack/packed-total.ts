// The vault's total as a pack holds it, with the number of the rows that it leaves out, the reasons, and the first 1,000 of
// these rows. The file of rows to leave out holds all of them (leave-out/).
import { z } from 'zod'
import type { ResultLine } from './results-file.ts'
import { MigrationTotal } from './total.ts'

const count = z.int().min(0)

export const LISTED_MAX = 1_000

export const TotalExceptions = z.strictObject({
  rows: count,
  by_reason: z.record(z.string(), count).describe('Rows by the reason for which the total leaves them out.'),
  listed: z
    .array(
      z.strictObject({
        batch_id: z.string(),
        line: z.int().min(1),
        item: z.string().nullable(),
        reference: z.string().nullable(),
        reason: z.string(),
      }),
    )
    .describe('At most the first 1,000, named as the results name them.'),
})
export type TotalExceptions = z.infer<typeof TotalExceptions>

export const PackedTotal = z.strictObject({
  ...MigrationTotal.omit({ exceptions: true }).shape,
  exceptions: TotalExceptions,
})
export type PackedTotal = z.infer<typeof PackedTotal>

export interface TotalExceptionCounter {
  add(batchId: string, row: ResultLine, reason: string): void
  all(): TotalExceptions
}

export function openTotalExceptions(): TotalExceptionCounter {
  const listed: TotalExceptions['listed'] = []
  const byReason = new Map<string, number>()
  let rows = 0
  return {
    add(batchId, { line, item, reference }, reason) {
      rows += 1
      byReason.set(reason, (byReason.get(reason) ?? 0) + 1)
      if (listed.length < LISTED_MAX) listed.push({ batch_id: batchId, line, item, reference, reason })
    },
    all: () => ({ rows, by_reason: Object.fromEntries(byReason), listed }),
  }
}
