// The form of a migration's batch (../../client/in-form.ts): columns, unless the run's records can't stand in columns.

import { type BlockForm, columnLines } from '../../../src/job/record-columns.ts'
import type { RecordForm } from '../../client/in-form.ts'
import type { RowChunk } from '../../rows/chunks.ts'
import { jsonOf } from '../../rows/column-record.ts'
import type { Chunk } from '../../token-batch.ts'
import type { MigrateOptions } from '../options.ts'

export function recordFormOf(options: MigrateOptions): RecordForm {
  return canHaveColumns(options) ? { now: 'columns' } : { now: 'rows', isFixed: true }
}

/**
 * Whether records of such a run can stand in columns. Dry runs leave no batch, and their chunks aren't repeated in a
 * later run.
 */
function canHaveColumns({ recordKind, dryRun, profile, sourceTime }: MigrateOptions): boolean {
  const saysMore = profile?.on_file !== undefined || (sourceTime !== undefined && 'column' in sourceTime)
  return recordKind === 'token-create' && !dryRun && !saysMore
}

/** The rows to be sent, in a form. */
export function chunkIn(form: BlockForm, { rows }: RowChunk): Pick<Chunk, 'lines' | 'form' | 'records'> {
  const sent = rows.filter(({ skipped }) => skipped === undefined)
  if (form === 'rows') return { lines: sent.map(jsonOf) }
  return { lines: columnLines(sent.map(({ columns, json }) => columns ?? json)), form, records: sent.length }
}

/** Whether the records are to be read for columns. */
export function mayHaveColumns({ isFixed }: RecordForm): boolean {
  return !isFixed
}
