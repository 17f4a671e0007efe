// Upgrades the database schema: numbered, named migrations, forward only. It makes tables and roles; the command
// `schema upgrade` writes their first rows (keys, clients). Only this file loads kysely.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Kysely, PostgresDialect, sql } from 'kysely'
import { type Migration, Migrator } from 'kysely/migration'
import type pg from 'pg'
import { ConfigError } from '../config.ts'
import * as clusterRecord from './connection/cluster-record.ts'
import { openPool } from './connection/connection.ts'
import { readServerStateIfAllowed } from './connection/server-state.ts'
import * as largeIndexes from './large-indexes.ts'
import { hasRoles, makeRoles } from './roles.ts'
import { MIGRATIONS, PARTITION_LOCK, partitionStatements, schemaState } from './schema.ts'
import type { Tables } from './tables.ts'
import * as workerRights from './worker-rights.ts'

/** A step that takes long on a large store. */
export interface UpgradeStep {
  kind: 'migration' | 'index'
  name: string
}

type Begins = (step: UpgradeStep) => void

const migrationOf = (name: string, tables: readonly Tables[], begins: Begins): Migration => ({
  up: async db => {
    begins({ kind: 'migration', name })
    for (const text of readMigration(name, tables)) await sql.raw(text).execute(db)
  },
})

/**
 * Runs the missing migrations in one transaction; concurrent runs wait for each other. Then builds the indexes that
 * can't be built in one. Returns the names of the migrations that ran: none where a later release has upgraded the schema.
 * `begins` is called with each step before it begins.
 */
export async function upgradeSchema(
  url: string,
  tables: readonly Tables[],
  begins: Begins = () => undefined,
): Promise<string[]> {
  const { pool } = openPool(url, { max: 2, application: 'tokenmill schema' })
  // The pool emits `error` when it loses an idle connection; the next statement opens a new one. A connection that is
  // lost during a statement makes that statement fail.
  pool.on('error', () => undefined)
  const db = new Kysely<unknown>({ dialect: new PostgresDialect({ pool }) })
  try {
    const version = await sql<{ num: string }>`select current_setting('server_version_num') as num`.execute(db)
    const major = Math.floor(Number(version.rows[0]?.num) / 10_000)
    if (major < 13)
      throw new ConfigError(`DATABASE_URL: PostgreSQL 13 or newer is required, the server is PostgreSQL ${major}`)
    const encoding = await sql<{ has: string }>`select current_setting('server_encoding') as has`.execute(db)
    const has = encoding.rows[0]?.has
    if (has !== 'UTF8')
      throw new ConfigError(
        `DATABASE_URL: this database stores texts in ${has}, which lacks letters that names have; make one with createdb --encoding=UTF8 --template=template0`,
      )
    const state = await schemaState(pool)
    if (state === 'newer') return []
    const migrator = new Migrator({
      db,
      migrationTableSchema: 'tokenmill',
      provider: {
        getMigrations: async () =>
          Object.fromEntries(MIGRATIONS.map(name => [name, migrationOf(name, tables, begins)])),
      },
    })
    if (state === 'absent' || !(await hasRoles(pool))) await makeRoles(pool)
    const { error, results } = await migrator.migrateToLatest()
    if (error) throw error
    await ensurePartitions(db)
    // Before the indexes: a build that is broken off leaves the workers their rights.
    await workerRights.grant(pool, tables)
    await largeIndexes.ensureAll(pool, tables, name => begins({ kind: 'index', name }))
    await adoptCluster(pool)
    return (results ?? []).filter(result => result.status === 'Success').map(result => result.migrationName)
  } finally {
    await db.destroy()
  }
}

/** The texts of a migration's files, in the order in which they run. */
function readMigration(name: string, tables: readonly Tables[]): string[] {
  const folder = join(fileURLToPath(new URL('./migrations', import.meta.url)), name)
  const names = new Set(readdirSync(folder))
  return tables
    .map(({ sql: file }) => `${file}.sql`)
    .filter(file => names.has(file))
    .map(file => readFileSync(join(folder, file), 'utf8'))
}

/**
 * Records the server. Skipped if the user may not ask for its id: then a list of hosts, set later, can't tell this
 * store from a copy.
 */
async function adoptCluster(pool: pg.Pool): Promise<void> {
  const standing = await readServerStateIfAllowed(pool)
  if (standing) await clusterRecord.adopt(pool, standing)
}

/**
 * Makes the missing partitions of last week, of this week and of the next 8 weeks, for each partitioned table. Weeks
 * begin on Monday, UTC.
 */
async function ensurePartitions(db: Kysely<unknown>): Promise<void> {
  await db.transaction().execute(async step => {
    await sql.raw(PARTITION_LOCK).execute(step)
    for (const statement of partitionStatements(Date.now())) await sql.raw(statement).execute(step)
  })
}
