// Makes the errors that end a run: after a chunk that was refused as a whole, or after a first chunk whose refusals all
// other rows will share. Each error says what to do next.

import { textOf } from '../../src/errors.ts'
import type { Result } from '../../src/job/answer/result.ts'
import { UPGRADE_WORKERS } from '../../src/job/envelope/features.ts'
import { reasonIn } from '../../src/job/problem.ts'
import { FileError } from '../rows/file-error.ts'

const NEXT: Record<string, string> = {
  batch_extent: 'Another file was begun under this batch id; choose another --batch-id.',
  batch_finished: 'Another file was sent under this batch id; choose another --batch-id.',
  block_records: UPGRADE_WORKERS,
  field_unknown: UPGRADE_WORKERS,
  batch_layout: 'Run it with the options it was begun with (chunk size, scope, policies), or leave --batch-id out.',
  batch_too_old: 'Its receipts are gone: run it with --again to judge the file against today’s store.',
  alias_unknown: 'Ask the operator for the capture key of your entity, and name it in the client’s file.',
  role_missing: 'Ask the operator to grant the client this role.',
  entity_forbidden: 'The client’s file names an entity that the client does not act for; ask the operator.',
  jti_reused:
    'Another file was sent under this batch id: choose another --batch-id. If it was this file, run the same command again, with the --echo of the first run.',
  dry_run_rows:
    'Ask the operator to raise TOKENMILL_DRY_RUN_ROWS_MAX above the rows of the file; if it is above, try again tomorrow.',
}

/** The error for a chunk that was refused as a whole. `startedAt`: when the batch was first run, ms since the epoch. */
export function refusedChunk(number: number, result: Result, { startedAt }: { startedAt: number }): FileError {
  const wrong = reasonIn(result.error)
  const { field, reason } = wrong
  const since =
    reason === 'batch_too_old' ? ` It was first run on ${new Date(startedAt).toISOString().slice(0, 10)}.` : ''
  return new FileError(
    'input',
    `Chunk ${number} was refused: ${field}: ${textOf(wrong)}${since}`,
    nextOf(field, reason) ?? 'Correct that, then run the same command again.',
  )
}

/** The command line knows only policies of this release, so workers that refuse one don't know it. */
function nextOf(field: string, reason: string): string | undefined {
  return field.startsWith('body.request.policy') ? NEXT['field_unknown'] : NEXT[reason]
}

/**
 * The error for a first chunk whose rows were all refused for one reason that later rows will share; undefined for any
 * other chunk.
 */
export function hopelessReason({ records = [], columns }: Result): FileError | undefined {
  // Records in columns have made tokens.
  if (columns !== undefined && columns.line.length > 0) return undefined
  const all = (reason: string) => records.length > 0 && records.every(record => record.reason === reason)
  if (all('capture_time_stale')) {
    return new FileError(
      'input',
      'Every card of the first chunk was encrypted more than 15 minutes ago and is no longer valid.',
      'Export clear rows inside an OpenPGP file (.csv.pgp) instead.',
    )
  }
  if (all('scope_forbidden')) {
    return new FileError(
      'input',
      'This token scope is unknown, or not open to this client.',
      'Give a --scope of an entity that the client acts for; `tokenmill scope list` names them.',
    )
  }
  return undefined
}
