// A row of results as text: the CSV that `migrate` writes and the gateway sends, column by column. The caller decides
// where the text goes, and in which order.

import { cellOf } from '../../../src/csv-text.ts'
import { type AnyRecordResult, type RecordResult, tookEffect } from '../../../src/job/outcome.ts'

export interface ResultColumns {
  /** A replay tells the present status of the token. */
  tokenStatus?: boolean | undefined
  /** Whether it is the token or its scheme token that failed. */
  failedFacet?: boolean | undefined
  /** Names of the echoed columns. */
  echo?: readonly string[] | undefined
}

export type ResultRow = RecordResult & { echo?: readonly string[] | undefined }
type AnyRow = AnyRecordResult & Pick<ResultRow, 'echo'>

export const RESULT_COLUMNS = [
  'line',
  'reference',
  'outcome',
  'code',
  'reuse_token',
  'analytics_token',
  'bin',
  'last_four',
  'expiry_month',
  'expiry_year',
  'brand',
  'reason',
] as const

export function headerOf({ tokenStatus, failedFacet, echo = [] }: ResultColumns): string {
  const more = [...(tokenStatus ? ['token_status'] : []), ...(failedFacet ? ['failed_facet'] : []), ...echo.map(cellOf)]
  return `${[...RESULT_COLUMNS, ...more].join(',')}\n`
}

/** Rows as lines of CSV. */
export function textOf(rows: readonly AnyRow[], columns: ResultColumns): string {
  const { tokenStatus, failedFacet, echo } = columns
  let text = ''
  for (const row of rows) {
    text += `${row.line},${guarded(row.reference)},${row.outcome},${row.code},${guarded(row.reuse_token)},${
      row.analytics_token ?? ''
    },${row.bin ?? ''},${row.last_four ?? ''},${row.expiry_month ?? ''},${row.expiry_year ?? ''},${guarded(
      row.brand,
    )},${row.reason ?? ''}`
    if (tokenStatus) text += `,${row.token_status ?? ''}`
    if (failedFacet) text += `,${facetOf(row)}`
    // A rejected row echoes nothing, but has the cells of these columns.
    if (echo !== undefined) for (let index = 0; index < echo.length; index++) text += `,${guarded(row.echo?.[index])}`
    text += '\n'
  }
  return text
}

function facetOf({ failed_facet: facet, outcome }: AnyRow): string {
  return facet ?? (tookEffect(outcome) ? '' : 'token')
}

function guarded(text: string | undefined): string {
  return text === undefined || text === '' ? '' : cellOf(text)
}
