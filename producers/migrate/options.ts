// The options of a migration, as the command line gives them. The command sets their defaults; batch-identity.ts works
// out the batch that they describe.
import type { RecordKind } from '../../src/job/catalogue.ts'
import type { ON_CONFLICT, ON_EXPIRED, ON_ORPHAN } from '../../src/job/token-batch.ts'
import type { Secret } from '../../src/secret.ts'
import { FileError } from '../rows/file-error.ts'
import type { Format } from '../rows/input-format.ts'
import type { ColumnMap } from '../rows/layout.ts'
import type { OnlyList } from '../rows/only/list.ts'
import type { Profile } from '../rows/profile/profile.ts'
import type { BatchPlan } from '../token-batch.ts'
import type { StartedBy } from './provenance.ts'

/** A number of rows, or a share of those that were answered. */
export type RejectedMax = { rows: number } | { share: number }

/** `at`: of all rows, RFC 3339 in UTC. `column`: the file's column that says it of each row. */
export type SourceTime = { at: string } | { column: string }

export interface MigrateOptions {
  /** `-`: standard input. */
  file: string
  format?: Format | undefined
  scope?: string | undefined
  decryptKeyFile?: string | undefined
  passphrase?: Secret | undefined
  verifyKeyFile?: string | undefined
  map?: ColumnMap | undefined
  /** How the provider wrote the file; replaces `format`, `map` and `ignoreUnknown`. */
  profile?: Profile | undefined
  ignoreUnknown: boolean
  echo: readonly string[]
  results?: string | undefined
  manifest?: string | undefined
  /** The file of the rejected and failed rows. */
  rejects?: string | undefined
  /** The file that goes back to the provider, in the shape that the profile says. */
  return?: string | undefined
  dryRun: boolean
  /** The list of `--only`: rows that it doesn't name are skipped. */
  only?: OnlyList | undefined
  /** The path of a dry run's manifest, with which this run's counts are compared. */
  expect?: string | undefined
  onConflict: (typeof ON_CONFLICT)[number]
  onExpired: (typeof ON_EXPIRED)[number]
  /** When the data was given, for the policy `newest`. */
  sourceTime?: SourceTime | undefined
  /** What becomes of a token that loses its last owner. */
  onOrphan?: (typeof ON_ORPHAN)[number] | undefined
  /** If an owner has another number than before, its token stays and gets the new number. */
  relink?: boolean | undefined
  /** The name of the migration of which this batch is a part. */
  migration?: string | undefined
  /** Records per chunk, if somebody says it. */
  chunk?: number | undefined
  inFlight: number
  batchId?: string | undefined
  recordKind: RecordKind
  /** Whether scheme tokens are provisioned after the tokens are made. */
  schemeTokens?: boolean | undefined
  again: boolean
  /** Stops after this many rows, rounded up to whole chunks; the same command without it continues. */
  limit?: number | undefined
  /** Stops once more rows than this are rejected. */
  rejectedMax?: RejectedMax | undefined
  startedBy?: StartedBy | undefined
}

/** `inputSha256`: decides between data of the same source time. */
export function policyOf(options: MigrateOptions, inputSha256: string): NonNullable<BatchPlan['policy']> {
  const { onConflict, onExpired, onOrphan, relink, sourceTime } = options
  return {
    on_conflict: onConflict,
    on_expired: onExpired,
    ...(onOrphan ? { on_orphan: onOrphan } : {}),
    ...(relink ? { relink: true } : {}),
    ...(onConflict === 'newest' ? { input_sha256: inputSha256 } : {}),
    ...(sourceTime && 'at' in sourceTime ? { source_time: sourceTime.at } : {}),
  }
}

/** Throws a FileError for a time of all rows that lies ahead or before 1970: in a column each row would be rejected. */
export function timeColumnOf({ sourceTime }: MigrateOptions, now: number): string | undefined {
  if (sourceTime === undefined || 'column' in sourceTime) return sourceTime?.column
  const ms = Date.parse(sourceTime.at)
  if (ms >= 0 && ms <= now) return undefined
  throw new FileError(
    'usage',
    `--source-time lies ${ms < 0 ? 'before 1970' : 'in the future'}.`,
    ms < 0 ? 'Give the time at which the file was made.' : 'Give the time at which the file was made, or earlier.',
  )
}
