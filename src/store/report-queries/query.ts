// A report's query: three statements over the same rows. The files beside this one hold the queries; report-rows.ts
// runs them.
import type { Filter } from '../../report/definition.ts'

/** Parameters: $1 is the entity, the others are listed in `values`. Lines and groups come in the same order. */
export interface RowsQuery {
  values: readonly (keyof Filter)[]
  lines: string
  groups: string
  totals: string
  /** A statement without parameters: since which day (`since`) there is all that the report counts. */
  since?: string
}
