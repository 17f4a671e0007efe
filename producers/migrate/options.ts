// The options of a migration, as the command line gives them. The command sets their defaults; batch-identity.ts works
// out the batch that they describe.
import type { RecordKind } from '../../src/job/catalogue.ts'
import type { ON_CONFLICT, ON_EXPIRED, ON_ORPHAN } from '../../src/job/token-batch.ts'
import type { Secret } from '../../src/secret.ts'
import type { Format } from '../rows/input-format.ts'
import type { ColumnMap } from '../rows/layout.ts'
import type { OnlyList } from '../rows/only.ts'
import type { Profile } from '../rows/profile/profile.ts'

/** A number of rows, or a share of those that were answered. */
export type RejectedMax = { rows: number } | { share: number }

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
  /** The references of the wanted rows; other rows are skipped. */
  only?: OnlyList | undefined
  /** The path of a dry run's manifest, with which this run's counts are compared. */
  expect?: string | undefined
  onConflict: (typeof ON_CONFLICT)[number]
  onExpired: (typeof ON_EXPIRED)[number]
  /** What becomes of a token whose last owner goes to another token. */
  onOrphan?: (typeof ON_ORPHAN)[number] | undefined
  /** An owner with another number keeps its token, which gets the number. */
  relink?: boolean | undefined
  chunk: number
  inFlight: number
  batchId?: string | undefined
  recordKind: RecordKind
  /** Provision scheme tokens after tokens are made. */
  schemeTokens?: boolean | undefined
  again: boolean
  /** Stops after this many rows, rounded up to whole chunks; the same command without it continues. */
  limit?: number | undefined
  /** Stops once more rows than this are rejected. */
  rejectedMax?: RejectedMax | undefined
}

/** What happens to one token keeps the order of the file only if each chunk waits for the one before. */
export function isOrdered({ recordKind, onOrphan = 'keep', relink = false }: MigrateOptions): boolean {
  return recordKind !== 'token-create' || onOrphan !== 'keep' || relink
}
