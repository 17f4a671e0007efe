// What a query of a report is made of: three statements over the same rows. The queries lie beside it; who runs them is
// report-rows.ts.
import type { Filter } from '../../report/definition.ts'

/** Parameters: $1 entity, then as `values` lists them. Lines and groups come in the same order. */
export interface RowsQuery {
  values: readonly (keyof Filter)[]
  lines: string
  groups: string
  totals: string
}
