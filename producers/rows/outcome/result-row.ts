// A row of results as text: the CSV that `migrate` writes and the gateway sends, column by column. The caller decides
// where the text goes, and in which order.

import { cellOf } from '../../../src/csv-text.ts'
import { type AnyRecordResult, type RecordResult, tookEffect } from '../../../src/job/outcome.ts'
import type { SkipReason } from '../file-outcome.ts'
import type { Row } from '../record.ts'

export interface ResultColumns {
  /** The file was read with a profile: the results say which card of its element a row is, and what was repaired. */
  profile?: boolean | undefined
  /** The profile says whose cards the rows are. */
  owners?: boolean | undefined
  /** A replay also shows the token's current status. */
  tokenStatus?: boolean | undefined
  /** Shows which part failed: the token or its scheme token. */
  failedFacet?: boolean | undefined
  /** Names of the echoed columns. */
  echo?: readonly string[] | undefined
}

/** What a row has beside its record's outcome. */
type OfRow = Pick<Row, 'fileLine' | 'item' | 'repairs' | 'onFile'> & { echo?: readonly string[] | undefined }

export type ResultRow = RecordResult & OfRow
/** A row that the reader skipped, so that it was never sent to a worker. */
export type SkippedRow = {
  line: number
  reference?: string | undefined
  outcome: 'SKIPPED'
  reason: SkipReason
} & OfRow
/** A row of the results of a file. */
export type FileRow = ResultRow | SkippedRow
type AnyRow = AnyRecordResult & OfRow

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

export function headerOf({ profile, owners, tokenStatus, failedFacet, echo = [] }: ResultColumns): string {
  const more = [
    ...(profile ? ['item', 'repairs'] : []),
    ...(owners ? ['reference_outcome', 'previous_token'] : []),
    ...(tokenStatus ? ['token_status'] : []),
    ...(failedFacet ? ['failed_facet'] : []),
    ...echo.map(cellOf),
  ]
  return `${[...RESULT_COLUMNS, ...more].join(',')}\n`
}

type MayBeSkipped = AnyRow | (SkippedRow & Partial<AnyRow>)

/** Rows as lines of CSV. */
export function textOf(rows: readonly (AnyRow | SkippedRow)[], columns: ResultColumns): string {
  const { profile, owners, tokenStatus, failedFacet, echo } = columns
  const hasMore = profile || owners || tokenStatus || failedFacet || echo !== undefined
  let text = ''
  for (const given of rows) {
    const row: MayBeSkipped = given
    text += `${row.fileLine ?? row.line},${guarded(row.reference)},${row.outcome},${row.code ?? ''},${guarded(row.reuse_token)},${
      row.analytics_token ?? ''
    },${row.bin ?? ''},${row.last_four ?? ''},${row.expiry_month ?? ''},${row.expiry_year ?? ''},${guarded(
      row.brand,
    )},${row.reason ?? ''}`
    if (hasMore) text += moreOf(row, columns)
    text += '\n'
  }
  return text
}

/** The cells of columns that only some results have. */
function moreOf(row: MayBeSkipped, { profile, owners, tokenStatus, failedFacet, echo }: ResultColumns): string {
  let text = ''
  if (profile) text += `,${row.item ?? ''},${row.repairs?.join(' ') ?? ''}`
  if (owners) text += `,${row.reference_outcome ?? ''},${guarded(row.previous_token)}`
  if (tokenStatus) text += `,${row.token_status ?? ''}`
  if (failedFacet) text += `,${facetOf(row)}`
  // A row whose values must not be repeated has empty cells in these columns.
  if (echo !== undefined) for (let index = 0; index < echo.length; index++) text += `,${guarded(row.echo?.[index])}`
  return text
}

function facetOf({ failed_facet: facet, outcome }: Pick<AnyRow, 'failed_facet' | 'outcome'>): string {
  return facet ?? (tookEffect(outcome) ? '' : 'token')
}

function guarded(text: string | undefined): string {
  return text === undefined || text === '' ? '' : cellOf(text)
}
