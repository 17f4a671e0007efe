// The three statements of a report's query, all over the same rows. The queries are beside this file; report-rows.ts
// runs them.
import type { Filter } from '../../report/definition.ts'

/** Parameters: $1 entity, then as `values` lists them. Lines and groups come in the same order. */
export interface RowsQuery {
  values: readonly (keyof Filter)[]
  lines: string
  groups: string
  totals: string
}
