// Counts rows by brand, expiry year, outcome and reason: what a sign-off pack shows of the cards. A cell is a count and
// names no card, however small it is.
import { z } from 'zod'
import { FileError } from '../rows/file-error.ts'
import { FILE_OUTCOMES } from '../rows/file-outcome.ts'
import type { ResultLine } from './results-file.ts'

export const Cell = z.strictObject({
  /** Brand and year are null if the results don't say them, as for a rejected row. */
  brand: z.string().nullable(),
  expiry_year: z.string().nullable(),
  outcome: z.enum(FILE_OUTCOMES),
  reason: z.string().nullable(),
  rows: z.int().min(1),
})
export type Cell = z.infer<typeof Cell>

export interface Cells {
  add(row: ResultLine): void
  /** Sorted by brand, year, outcome and reason. */
  all(): Cell[]
}

/** The most cells of a pack: more would be a list of rows instead of counts. */
const CELLS_MAX = 20_000

export function openCells(): Cells {
  const cells = new Map<string, Cell>()
  return {
    add({ brand, expiryYear, outcome, reason }) {
      const key = `${brand ?? ''}\n${expiryYear ?? ''}\n${outcome}\n${reason ?? ''}`
      const found = cells.get(key)
      if (found) found.rows += 1
      else if (cells.size < CELLS_MAX) cells.set(key, { brand, expiry_year: expiryYear, outcome, reason, rows: 1 })
      else throw tooMany()
    },
    all: () => [...cells.values()].sort(byCell),
  }
}

function byCell(a: Cell, b: Cell): number {
  return (
    compare(a.brand, b.brand) ||
    compare(a.expiry_year, b.expiry_year) ||
    FILE_OUTCOMES.indexOf(a.outcome) - FILE_OUTCOMES.indexOf(b.outcome) ||
    compare(a.reason, b.reason)
  )
}

/** Compares texts; null comes last. */
function compare(a: string | null, b: string | null): number {
  if (a === b) return 0
  if (a === null || b === null) return a === null ? 1 : -1
  return a < b ? -1 : 1
}

function tooMany(): FileError {
  const wrong = `The results have more than ${CELLS_MAX} combinations of brand, expiry year, outcome and reason.`
  return new FileError('input', wrong, 'Check whether they are the results of migrate.')
}
