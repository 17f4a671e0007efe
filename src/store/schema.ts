// The names of the migrations that this release knows, and of the weekly partitions that a store must have.
// schema-upgrade.ts runs the migrations.
import { ConfigError } from '../config.ts'
import type { Db } from './pool.ts'

export const MIGRATIONS = [
  '0001-vault',
  '0002-roles',
  '0003-reversals',
  '0004-gateway',
  '0005-scheme',
  '0006-ledger',
  '0007-reports',
  '0008-three-ds',
  '0009-orders',
  '0010-scheme-rates',
  '0011-third-party',
  '0012-authentication-values',
  '0013-client-names',
  '0014-live-keys',
  '0015-cluster',
  '0016-report-makers',
  '0017-batch-life',
  '0018-processes',
  '0019-explain',
  '0020-events',
  '0021-traces',
  '0022-batch-lists',
  '0023-scheme-slowdowns',
  '0024-dropped-envelopes',
  '0025-source-references',
  '0026-released-references',
  '0028-references-by-number',
  '0029-given-at',
  '0031-manifest-totals',
  '0032-references-by-card',
  '0033-former-references',
  '0034-wrapping-keys',
  '0035-keks',
  '0036-data-key-life',
  '0037-reseal',
  '0038-audit-chain',
  '0039-grants',
  '0040-signing-key-life',
  '0041-cards',
  '0045-capture-lines',
  '0047-worker-role',
  '0048-confirmations',
  '0049-keyed-hashes',
  '0050-shared-keys',
  '0051-key-compromise',
  '0052-contract-former-keys',
  '0053-key-notices-and-pace',
  '0054-refuse-former-writers',
  '0055-used-confirmations',
  '0056-signing-key-codes',
  '0060-growth',
  '0062-receipt-keys',
  '0065-people',
  '0066-console',
  '0067-work-minute',
  '0068-batch-samples',
  '0069-explain-in-the-console',
  '0070-failed-acts',
  '0071-session-passkey',
  '0072-openid',
  '0073-people-in-the-console',
  '0074-audit-in-the-console',
  '0075-schedules-in-the-console',
  '0076-installation-page',
  '0077-destroyed-capture-keys',
  '0078-askers',
  '0079-process-load',
  '0080-untaken-scheme-tokens',
  '0081-process-login',
] as const

/** Throws `ConfigError` (exit 78, with what to do) if the store's schema isn't the one of this release. */
export async function assertSchema(db: Db): Promise<void> {
  const known = await db
    .query<{ name: string }>({ text: 'select name from tokenmill.kysely_migration order by name' })
    .catch(error => {
      if ((error as { code?: string }).code === '42P01' || (error as { code?: string }).code === '3F000')
        return { rows: [], count: 0 }
      throw error
    })
  const names = known.rows.map(row => row.name)
  if (names.join() === MIGRATIONS.join()) return
  const newer = names.length > MIGRATIONS.length
  throw new ConfigError(
    newer
      ? 'DATABASE_URL: the schema is newer than this release; deploy the release that upgraded it'
      : 'DATABASE_URL: the schema is not up to date; run `tokenmill schema upgrade` first',
  )
}

const WEEKS_AHEAD = 8

/** Taken before partitions are made: of two transactions that make the same table one fails. */
export const PARTITION_LOCK = `select pg_advisory_xact_lock(hashtextextended('tokenmill partitions', 0))`
export const PARTITIONED = ['receipt', 'outbox'] as const

export function partitionStatements(now: number): string[] {
  const monday = Math.floor((now / 86_400_000 - 4) / 7) * 7 + 4
  const day = (n: number) => new Date(n * 86_400_000).toISOString().slice(0, 10)
  return PARTITIONED.flatMap(table =>
    Array.from(
      { length: WEEKS_AHEAD + 2 },
      (_, week) => `select tokenmill.make_week('${table}', '${day(monday + (week - 1) * 7)}')`,
    ),
  )
}
