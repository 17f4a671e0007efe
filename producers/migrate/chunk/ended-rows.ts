// Makes the rows of results of a chunk, from its answer and from what only its rows know.
import { recordsOf } from '../../../src/job/answer/created-columns.ts'
import type { Result } from '../../../src/job/answer/result.ts'
import type { RecordResult } from '../../../src/job/outcome.ts'
import type { RowChunk } from '../../rows/chunks.ts'
import { FileError } from '../../rows/file-error.ts'
import type { SkipReason } from '../../rows/file-outcome.ts'
import type { FileRow, ResultRow } from '../../rows/outcome/result-row.ts'
import type { Row } from '../../rows/rows.ts'
import { refusedChunk } from '../refused-chunk.ts'

/**
 * One row of results for each row of the chunk. Throws a FileError for a refused chunk, and for a chunk that was done
 * in an earlier run and has failed since.
 */
export function rowsOf({ number, rows }: RowChunk, result: Result | undefined, plan: { startedAt: number }): FileRow[] {
  const sent = rows.filter(({ skipped }) => skipped === undefined)
  const answers = result && number !== undefined ? answersOf({ number, rows: sent }, result, plan) : []
  if (sent.length === rows.length) return answers
  let next = 0
  return rows.map(row => (row.skipped === undefined ? (answers[next++] as ResultRow) : skippedRow(row, row.skipped)))
}

function skippedRow({ line, reference, fileLine, item, repairs }: Row, reason: SkipReason): FileRow {
  return { line, reference, outcome: 'SKIPPED', reason, fileLine, item, repairs }
}

function answersOf(
  { number, rows }: { number: number; rows: readonly Row[] },
  result: Result,
  plan: { startedAt: number },
): ResultRow[] {
  const records = recordsOf(result)
  if (records) {
    if (records.length !== rows.length)
      throw new Error(`broken law: chunk ${number} has ${rows.length} rows and ${records.length} outcomes`)
    return records.map((record, index) => withRow(record, rows[index]))
  }
  if (result.code !== 500) throw refusedChunk(number, result, plan)
  // The chunk was done in an earlier run. This answer doesn't name the tokens that were made then.
  if (result.revision === 0)
    throw new FileError(
      'input',
      `Chunk ${number} was done in an earlier run, and its failed rows could not be worked again.`,
      'Run the same command again later; the operator finds the cause in the failed set (`tokenmill failed list`).',
    )
  return rows.map(row => withRow({ line: row.line, outcome: 'FAILED', code: 500, reason: 'internal' }, row))
}

/** Adds to the record what only its row says. The record is changed in place, because nothing else holds it. */
function withRow(record: RecordResult, row: Row | undefined): ResultRow {
  if (row === undefined || row.line !== record.line)
    throw new Error('broken law: outcomes stand in the order of their rows')
  const ended: ResultRow = record
  const leak = record.reason === 'reference_pan'
  ended.reference = leak ? undefined : row.reference
  ended.echo = leak ? undefined : row.echo
  if (row.repairs === undefined) return ended
  const { fileLine, item, repairs, onFile } = row
  return Object.assign(ended, { fileLine, item, repairs, onFile })
}
