// Refuses options of a migration that can't go together, before a file is read.
import { resolve } from 'node:path'
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

/** The files that the run writes, by the options that name them. */
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
