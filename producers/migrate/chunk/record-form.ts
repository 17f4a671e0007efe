// The form of a migration's batch (../../client/in-form.ts). The checkpoint or the manifest of an earlier run says which form
// that is. Where neither is there, the first chunk finds out.

import { type BlockForm, columnLines } from '../../../src/job/record-columns.ts'
import { formByFeature, type RecordForm } from '../../client/in-form.ts'
import type { FileRunDeps } from '../../file-run.ts'
import type { RowChunk } from '../../rows/chunks.ts'
import { jsonOf } from '../../rows/column-record.ts'
import type { Chunk } from '../../token-batch.ts'
import type { Checkpoint } from '../checkpoint.ts'
import type { MigrateOptions } from '../options.ts'

/** What checkpoint and manifest say of the form. Earlier releases sent rows and wrote no `record_form`. */
export function formOption({ now }: RecordForm): { record_form?: 'columns' } {
  return now === 'columns' ? { record_form: 'columns' } : {}
}

/** The form that the options of a checkpoint or of a manifest name. */
export function toldForm({ record_form: form }: Checkpoint['options']): BlockForm {
  return form === 'columns' ? 'columns' : 'rows'
}

interface Before {
  /** Undefined for a batch of which no earlier run is known. */
  told: BlockForm | undefined
  checkpoint: Pick<Checkpoint, 'next_chunk'> | undefined
}

/**
 * The features of the workers are read only if neither names the form. Never throws: without an answer, rows are sent.
 */
export async function recordFormOf(
  options: MigrateOptions,
  { told, checkpoint }: Before,
  deps: FileRunDeps,
): Promise<RecordForm> {
  if (!canHaveColumns(options)) return { now: 'rows', isSettled: true, isFixed: true }
  // A checkpoint before the first answer says only in which form that chunk was sent.
  if (told) return { now: told, isSettled: checkpoint?.next_chunk !== 0 }
  return formByFeature('columns', deps)
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
