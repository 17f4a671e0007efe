// The exceptions of a migration: rows that were rejected, failed or were cancelled, and, if the pack has the total, all other
// rows that the total leaves out. Each should have a decision; an exception without a decision is open.
import { z } from 'zod'
import { NamedFile } from '../migrate/manifest.ts'
import { Decision, type Decisions } from './decisions.ts'
import { LISTED_MAX } from './packed-total.ts'
import type { ResultLine } from './results-file.ts'

const count = z.int().min(0)

/** `total`: the row ended well, and the total leaves it out. */
export const EXCEPTION_KINDS = ['REJECTED', 'FAILED', 'CANCELLED', 'total'] as const

const Exception = z.strictObject({
  batch_id: z.string(),
  line: z.int().min(1),
  /** In nested JSON: which card of the file it is, as in the results. */
  item: z.string().nullable(),
  reference: z.string().nullable(),
  kind: z.enum(EXCEPTION_KINDS),
  reason: z.string().nullable(),
})
type Exception = z.infer<typeof Exception>

export const Exceptions = z.strictObject({
  rows: count,
  decided: count,
  open: count,
  /** The number of rows of each decision, sorted by decision. */
  by_decision: z.array(z.strictObject({ decision: z.string(), rows: count })),
  /** Absent: there is no file of decisions. */
  decisions: NamedFile.optional(),
  /** Lines of the file of decisions that decide about no exception; at most the first 1,000. */
  unused_decisions: z.strictObject({ count, lines: z.array(z.int().min(1)) }),
  /** At most the first 1,000 of each. */
  listed_open: z.array(Exception),
  listed_decided: z.array(z.strictObject({ ...Exception.shape, ...Decision.shape })),
})
export type Exceptions = z.infer<typeof Exceptions>

export interface ExceptionCounter {
  /** `leftOut`: why the total leaves the row out. */
  add(batchId: string, row: ResultLine, leftOut: string | undefined): void
  all(): Exceptions
}

export function openExceptions(decisions: Decisions | undefined): ExceptionCounter {
  const open: Exception[] = []
  const decided: Exceptions['listed_decided'] = []
  const byDecision = new Map<string, number>()
  let rows = 0
  function note(exception: Exception): void {
    rows += 1
    const { batch_id: batchId, line, item, reference } = exception
    const decision = decisions?.find({ batchId, line, item, reference })
    if (!decision) {
      if (open.length < LISTED_MAX) open.push(exception)
      return
    }
    byDecision.set(decision.decision, (byDecision.get(decision.decision) ?? 0) + 1)
    if (decided.length < LISTED_MAX) decided.push({ ...exception, ...decision })
  }
  return {
    add(batchId, { line, item, reference, outcome, reason }, leftOut) {
      const row = { batch_id: batchId, line, item, reference }
      if (outcome === 'REJECTED' || outcome === 'FAILED' || outcome === 'CANCELLED')
        note({ ...row, kind: outcome, reason })
      else if (leftOut !== undefined) note({ ...row, kind: 'total', reason: leftOut })
    },
    all() {
      const unused = decisions?.unused() ?? []
      const sum = [...byDecision.values()].reduce((total, n) => total + n, 0)
      return {
        rows,
        decided: sum,
        open: rows - sum,
        by_decision: [...byDecision]
          .map(([decision, n]) => ({ decision, rows: n }))
          .sort((a, b) => (a.decision < b.decision ? -1 : 1)),
        ...(decisions && { decisions: decisions.file }),
        unused_decisions: { count: unused.length, lines: unused.slice(0, LISTED_MAX) },
        listed_open: open,
        listed_decided: decided,
      }
    },
  }
}
