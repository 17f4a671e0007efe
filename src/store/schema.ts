// Brings the database up to date: numbered, named, forward only. It makes tables and roles; what lies in them at first
// (keys, clients) is made by the `schema upgrade` command.
import { Kysely, PostgresDialect, sql } from 'kysely'
import { type Migration, Migrator } from 'kysely/migration'
import type pg from 'pg'
import { ConfigError } from '../config.ts'
import * as clusterRecord from './connection/cluster-record.ts'
import { openPool } from './connection/connection.ts'
import { askStandingIfAllowed } from './connection/standing.ts'
import { type Db, readSql } from './pool.ts'

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
  '0019-explain',
] as const

const migrationOf = (name: string): Migration => ({
  up: async db => {
    await sql.raw(readSql(`${name}.sql`)).execute(db)
  },
})

/** Runs what is missing, in one transaction; several at once wait for each other. Returns the names of those that ran. */
export async function upgradeSchema(url: string): Promise<string[]> {
  const { pool } = openPool(url, { max: 2, application: 'tokenmill schema' })
  // A lost connection shows in the statement that was running on it.
  pool.on('error', () => undefined)
  const db = new Kysely<unknown>({ dialect: new PostgresDialect({ pool }) })
  try {
    const version = await sql<{ server_version_num: string }>`show server_version_num`.execute(db)
    const major = Math.floor(Number(version.rows[0]?.server_version_num) / 10_000)
    if (major < 13) throw new ConfigError(`DATABASE_URL: PostgreSQL 13 or newer is needed, this is ${major}`)
    const migrator = new Migrator({
      db,
      migrationTableSchema: 'tokenmill',
      provider: { getMigrations: async () => Object.fromEntries(MIGRATIONS.map(name => [name, migrationOf(name)])) },
    })
    const { error, results } = await migrator.migrateToLatest()
    if (error) throw error
    await ensurePartitions(db)
    await adoptCluster(pool)
    return (results ?? []).filter(result => result.status === 'Success').map(result => result.migrationName)
  } finally {
    await db.destroy()
  }
}

/** Left out where the user may not ask: then a later list of hosts can't tell this store from a copy. */
async function adoptCluster(pool: pg.Pool): Promise<void> {
  const standing = await askStandingIfAllowed(pool)
  if (standing) await clusterRecord.adopt(pool, standing)
}

/** Refuses a store that this code doesn't know: exit 78 with what to do. */
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

/** Partitions for this week and those ahead, on each partitioned table. Weeks begin on Monday, UTC. */
async function ensurePartitions(db: Kysely<unknown>): Promise<void> {
  await db.transaction().execute(async step => {
    await sql.raw(PARTITION_LOCK).execute(step)
    for (const statement of partitionStatements(Date.now())) await sql.raw(statement).execute(step)
  })
}

/** "if not exists" doesn't help two who make the same table at once: one fails. */
export const PARTITION_LOCK = `select pg_advisory_xact_lock(hashtextextended('tokenmill partitions', 0))`
export const PARTITIONED = ['receipt', 'outbox'] as const

export function partitionStatements(now: number): string[] {
  const monday = Math.floor((now / 86_400_000 - 4) / 7) * 7 + 4
  const day = (n: number) => new Date(n * 86_400_000).toISOString().slice(0, 10)
  return PARTITIONED.flatMap(table =>
    Array.from({ length: WEEKS_AHEAD + 2 }, (_, week) => {
      const from = day(monday + (week - 1) * 7)
      const to = day(monday + week * 7)
      const name = `tokenmill.${table}_${from.replaceAll('-', '')}`
      return `create table if not exists ${name} partition of tokenmill.${table} for values from ('${from}') to ('${to}')`
    }),
  )
}
