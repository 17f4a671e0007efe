// The form in which the records of a batch are sent: in columns if every live worker reads them and the batch has nothing but
// new cards (`canHaveColumns`), else in rows. All chunks of a batch have the form of its first one, because the same rows in another form are another chunk. The checkpoint or the
// manifest of an earlier run says which form that is. Where neither is there, the first chunk finds out.

import { type BlockForm, columnLines } from '../../../src/job/block/record-columns.ts'
import type { Result } from '../../../src/job/result.ts'
import { openTrustedKeys } from '../../client/trusted-keys.ts'
import type { FileRunDeps } from '../../file-run.ts'
import { listedFeatures } from '../../live-features.ts'
import type { RowChunk } from '../../rows/chunks.ts'
import { jsonOf } from '../../rows/column-record.ts'
import type { Chunk } from '../../token-batch.ts'
import type { Checkpoint } from '../checkpoint.ts'
import type { MigrateOptions } from '../options.ts'

export interface RecordForm {
  /** Changes with the answer to a chunk that shows that the batch has the other form. */
  now: BlockForm
  /** A chunk was answered: the next ones needn't go alone. */
  isSettled: boolean
  /** The run's records can't stand in columns. */
  isFixed?: true
}

/** What checkpoint and manifest say of the form. Earlier releases sent rows and said nothing. */
export function formOption({ now }: RecordForm): { record_form?: 'columns' } {
  return now === 'columns' ? { record_form: 'columns' } : {}
}

/** The form that the options of a checkpoint or of a manifest tell. */
export function toldForm({ record_form: form }: Checkpoint['options']): BlockForm {
  return form === 'columns' ? 'columns' : 'rows'
}

interface Before {
  /** Undefined for a batch of which no earlier run is known. */
  told: BlockForm | undefined
  checkpoint: Pick<Checkpoint, 'next_chunk'> | undefined
}

/** Workers are asked what they read only if nothing tells the form. Never throws: without an answer, rows are sent. */
export async function recordFormOf(
  options: MigrateOptions,
  { told, checkpoint }: Before,
  deps: FileRunDeps,
): Promise<RecordForm> {
  if (!canHaveColumns(options)) return { now: 'rows', isSettled: true, isFixed: true }
  // A checkpoint before the first answer says only in which form that chunk was sent.
  if (told) return { now: told, isSettled: checkpoint?.next_chunk !== 0 }
  const { queues, credentials, log, clock } = deps
  const read = deps.features ?? listedFeatures(queues, openTrustedKeys(credentials, log), clock)
  const features: readonly string[] = await read().catch(() => [])
  return { now: features.includes('columns') ? 'columns' : 'rows', isSettled: false }
}

/** Whether records of such a run can stand in columns. Dry runs leave no batch, and nobody repeats their chunks. */
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

/**
 * Sends a chunk in the form of the batch. If it is refused as one of another form, it is sent once more in the other form:
 * the refused one took no effect. So a run that was wrong about the form, because the queue still held a job of an earlier
 * run in the other form, finds it out. Returns the first refusal if the second chunk is refused, too.
 */
export async function sendInForm(form: RecordForm, send: (form: BlockForm) => Promise<Result>): Promise<Result> {
  const first = form.now
  const result = await send(first)
  const other = first === 'rows' ? 'columns' : 'rows'
  const again = !form.isFixed && isOfOtherForm(result) ? await send(other) : undefined
  form.isSettled = true
  if (!again || isOfOtherForm(again)) return result
  form.now = other
  return again
}

/**
 * Whether the chunk was refused because it was done in another form, because the batch has another form, or because a
 * worker of an older release counted its lines.
 */
function isOfOtherForm({ error }: Result): boolean {
  const code = (field: string) => error?.details?.[field]?.code
  return (
    code('body.jti') === 'jti_reused' ||
    code('body.request.batch_id') === 'batch_layout' ||
    code('body.request.block') === 'block_records'
  )
}

/** Whether the records are to be read for columns. */
export function mayHaveColumns({ isFixed }: RecordForm): boolean {
  return !isFixed
}
