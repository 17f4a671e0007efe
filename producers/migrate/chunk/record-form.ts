// The form of a migration's batch (../../client/in-form.ts): columns, unless the run's records can't stand in columns.

import type { RecordForm } from '../../client/in-form.ts'
import type { MigrateOptions } from '../options.ts'

export function recordFormOf(options: MigrateOptions): RecordForm {
  return canHaveColumns(options) ? { now: 'columns' } : { now: 'rows', isFixed: true }
}

/** Whether records of such a run can stand in columns. */
function canHaveColumns({ recordKind, profile, sourceTime }: MigrateOptions): boolean {
  const saysMore = profile?.on_file !== undefined || (sourceTime !== undefined && 'column' in sourceTime)
  return recordKind === 'token-create' && !saysMore
}

/** Whether the records are to be read for columns. */
export function mayHaveColumns({ isFixed }: RecordForm): boolean {
  return !isFixed
}
