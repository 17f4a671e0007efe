// The identity of a `migrate` run, worked out before anything is sent: the batch id, which decides whether two runs are
// the same, and the places of its files.
import { createHash, randomBytes } from 'node:crypto'
import type { Profile } from '../rows/profile/profile.ts'
import type { InputDigest } from '../rows/segments.ts'
import type { MigrateOptions } from './options.ts'

/** All options that decide what the batch does. Checkpoint and manifest keep them. */
export function layoutOf(
  options: MigrateOptions,
): Record<string, string | number | boolean | null | (string | null)[] | Record<string, string | null>> {
  return {
    record_kind: options.recordKind,
    token_scope: options.scope ?? null,
    on_conflict: options.onConflict,
    on_expired: options.onExpired,
    format: options.format ?? null,
    map: options.map ?? {},
    ignore_unknown: options.ignoreUnknown,
    echo: [...options.echo],
    ...(options.schemeTokens ? { scheme_tokens: true } : {}),
    ...(options.onOrphan ? { on_orphan: options.onOrphan } : {}),
    ...(options.relink ? { relink: true } : {}),
    ...sourceTimeOf(options),
    ...(options.only ? { only_sha256: options.only.sha256 } : {}),
    ...(options.profile ? { profile: options.profile.name, profile_sha256: digestOf(options.profile) } : {}),
    ...accountOf(options.profile),
  }
}

function sourceTimeOf({ sourceTime }: MigrateOptions): { source_time?: string; source_time_column?: string } {
  if (!sourceTime) return {}
  return 'at' in sourceTime ? { source_time: sourceTime.at } : { source_time_column: sourceTime.column }
}

/**
 * The provider's account, if the profile gives it as a constant. It is part of the profile's digest, too; here a person
 * can read it.
 */
function accountOf(profile: Profile | undefined): { provider_account?: string } {
  const account = profile?.on_file?.provider_account
  return account && 'constant' in account ? { provider_account: account.constant } : {}
}

/**
 * The digest of those members of a profile that decide how the file is read. A change of `title`, `notes`, `add` or
 * `return` alone makes no other batch.
 */
function digestOf({ title: _, notes: __, add: ___, return: ____, ...deciding }: Profile): string {
  return createHash('sha256').update(JSON.stringify(deciding)).digest('hex')
}

/**
 * A dry run has a random id, and `--batch-id` gives the id of another run. Otherwise the id follows from the file's
 * digest and the options that decide what the batch does; `--again` adds a random part, so each such run is another
 * batch.
 */
export function batchIdOf(options: MigrateOptions, digest: InputDigest | undefined): string {
  if (options.dryRun) return `dry-${randomBytes(12).toString('hex')}`
  if (options.batchId !== undefined) return options.batchId
  const { format: _, echo: __, ...deciding } = layoutOf(options)
  const again = options.again ? randomBytes(16).toString('hex') : ''
  const hash = createHash('sha256').update(JSON.stringify([digest?.sha256, deciding, again]))
  return `m-${hash.digest('hex').slice(0, 32)}`
}

const BATCH_ID_MAX = 64
const DIGEST_LENGTH = 16

/**
 * The id of a batch that belongs to another batch. If id and suffix together are too long, a digest of the whole id
 * replaces the id's end, so that no two batches get the same id.
 */
export function derivedBatchId(batchId: string, suffix: string): string {
  if (batchId.length + suffix.length <= BATCH_ID_MAX) return `${batchId}${suffix}`
  const hex = createHash('sha256').update(batchId).digest('hex').slice(0, DIGEST_LENGTH)
  // Letters replace digits, so that neither the digest nor the beginning of a longer number looks like a card number.
  const letters = hex.replace(/\d/g, digit => String.fromCharCode('g'.charCodeAt(0) + Number(digit)))
  const head = batchId.slice(0, BATCH_ID_MAX - suffix.length - DIGEST_LENGTH - 1).replace(/[\d-]+$/, '')
  return `${head}-${letters}${suffix}`
}

/**
 * The files of a dry run or a replay lie beside those of the run, wherever its options put them: the folder of the input may be
 * closed to the command, and the files of the run stay.
 */
export type Variant = 'run' | 'dry-run' | 'replay'

/** The files of rows that a run writes, each by the option that names it. The results are always written. */
export const OUTPUTS = { results: '--results', rejects: '--rejects', return: '--return' } as const
export type OutputName = keyof typeof OUTPUTS

export interface Paths extends Partial<Record<OutputName, string | undefined>> {
  results: string
  manifest: string
}

export function pathsOf(options: MigrateOptions, variant: Variant): Paths {
  const { file, results, manifest, rejects } = options
  const stem = file === '-' ? (results ?? 'stdin') : file
  if (variant === 'run')
    return {
      results: results ?? `${file}.results.csv`,
      rejects,
      return: options.return,
      manifest: manifest ?? `${stem}.manifest.json`,
    }
  const own = (name: OutputName) =>
    options[name] === undefined ? `${stem}.${variant}.${name}.csv` : `${options[name]}.${variant}.csv`
  return {
    results: own('results'),
    rejects: rejects && own('rejects'),
    return: options.return && own('return'),
    manifest: manifest === undefined ? `${stem}.${variant}.manifest.json` : `${manifest}.${variant}.json`,
  }
}

/** Names the results queue of a run, which its continuation finds again. */
export function replyToOf(batchId: string): string {
  return `m${createHash('sha256').update(batchId).digest('hex').slice(0, 24)}`
}
