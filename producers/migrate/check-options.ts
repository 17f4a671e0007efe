// Refuses options of a migration that can't go together, before a file is read.
import { resolve } from 'node:path'
import { holdsPossiblePan } from '../../src/token/possible-pan.ts'
import { FileError } from '../rows/file-error.ts'
import { OUTPUTS, type OutputName, pathsOf } from './batch-identity.ts'
import { checkpointPath } from './checkpoint.ts'
import { signaturePath } from './manifest.ts'
import type { MigrateOptions } from './options.ts'
import { outputForms } from './output-files.ts'

/** Options about owners need a profile that names them. */
function refuseOwnerless({ profile, onOrphan, relink }: MigrateOptions): void {
  if (profile?.on_file || (onOrphan === undefined && !relink)) return
  const option = relink ? '--relink' : '--on-orphan'
  throw new FileError(
    'usage',
    `${option} needs a profile that says whose cards the rows are.`,
    'Name one with --from that has on_file, or leave it out.',
  )
}

/** Only `newest` compares source times, so `--source-time` and `newest` must be given together. */
function refuseUntimed({ onConflict, sourceTime, recordKind }: MigrateOptions): void {
  if (onConflict === 'newest' && !sourceTime)
    throw new FileError(
      'usage',
      '--on-conflict newest needs --source-time.',
      'Name the column that says when each row was given, or the day on which the file was made (2026-03-31).',
    )
  if (onConflict !== 'newest' && sourceTime)
    throw new FileError(
      'usage',
      '--source-time needs --on-conflict newest.',
      'Give both, so that an older file undoes nothing newer, or leave --source-time out.',
    )
  if (sourceTime && recordKind !== 'token-create')
    throw new FileError(
      'usage',
      '--source-time goes with --record-kind token-create.',
      'Leave --source-time and --on-conflict newest out.',
    )
}

function refuseUnfitList({ only, profile }: MigrateOptions): void {
  if (!only?.namesOwners || profile?.on_file) return
  const next = 'Name one with --from that has on_file, or list references.'
  throw new FileError('usage', '--only lists customers, and nothing says whose cards the rows are.', next)
}

/** Refuses a list that was made for another file. `sha256`: of the file, undefined for standard input. */
export function refuseOtherFile({ only, file }: MigrateOptions, sha256: string | undefined): void {
  if (only?.inputSha256 === undefined || only.inputSha256 === sha256) return
  const next = 'Give the file of that `migrate diff`, or run it again with this file.'
  throw new FileError('usage', `The plan of --only names lines of another file than ${file}.`, next)
}

/** The name is shown in clear where batches are listed, so it must not be a card number. */
function refuseNumber({ migration }: MigrateOptions): void {
  if (migration !== undefined && holdsPossiblePan(migration))
    throw new FileError('usage', 'The name of --migration could be a card number.', 'Choose another.')
}

/** The files of rows that the run writes, by the options that name them. */
export function filesOf(options: MigrateOptions): [option: string, path: string][] {
  const paths = pathsOf(options, options.dryRun ? 'dry-run' : 'run')
  return Object.entries(OUTPUTS).flatMap(([name, option]): [string, string][] => {
    const path = paths[name as OutputName]
    return path === undefined ? [] : [[option, path]]
  })
}

function refuseSameFile(options: MigrateOptions): void {
  const { manifest, results } = pathsOf(options, options.dryRun ? 'dry-run' : 'run')
  const given = [
    ['FILE', options.file],
    ['--manifest', manifest],
    ['the signature of --manifest', signaturePath(manifest)],
    ['the checkpoint of --results', checkpointPath(results)],
    ...filesOf(options),
  ] as const
  const seen = new Map<string, string>()
  for (const [option, path] of given) {
    const before = seen.get(resolve(path))
    if (before !== undefined)
      throw new FileError('usage', `${before} and ${option} name the same file.`, 'Give each a name of its own.')
    seen.set(resolve(path), option)
  }
}

function refuseStandardOutput({ rejects, return: back }: MigrateOptions): void {
  const option = rejects === '-' ? '--rejects' : back === '-' ? '--return' : undefined
  if (option !== undefined)
    throw new FileError('usage', `${option} - is no name of a file.`, `Give it one with ${option} FILE.`)
}

export function refuseImpossible(options: MigrateOptions): void {
  const { file, batchId, results, recordKind, scope, dryRun, again, schemeTokens, limit } = options
  refuseOwnerless(options)
  refuseUntimed(options)
  refuseUnfitList(options)
  refuseNumber(options)
  outputForms(options, 'run')
  refuseStandardOutput(options)
  refuseSameFile(options)
  if (dryRun && limit !== undefined)
    throw new FileError('usage', '--limit goes with a real run.', 'A dry run changes nothing: leave --limit out.')
  if (file === '-' && (batchId === undefined || results === undefined)) {
    throw new FileError(
      'usage',
      'Standard input needs --batch-id and --results.',
      'Give both, so that the run can be continued.',
    )
  }
  if (recordKind === 'token-create' && scope === undefined) {
    throw new FileError(
      'usage',
      'A migration of new tokens needs a token scope.',
      'Give --scope UUID; `tokenmill scope list` names yours.',
    )
  }
  if (schemeTokens && recordKind !== 'token-create')
    throw new FileError(
      'usage',
      '--scheme-tokens needs --record-kind token-create.',
      'Use --record-kind scheme-token for tokens that exist.',
    )
  if (again && (dryRun || batchId !== undefined))
    throw new FileError(
      'usage',
      '--again makes a new batch id and starts a real run.',
      'Leave --batch-id and --dry-run out.',
    )
}
