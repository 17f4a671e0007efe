// The names of the migrations that this release knows, and of the weekly partitions that a store must have.
// schema-upgrade.ts runs the migrations.
import { ConfigError } from '../config.ts'

/** Each is a folder of src/store/migrations. From 1.0 on a migration is never changed, and another one follows it. */
export const MIGRATIONS = ['0001-baseline'] as const

const UNDEFINED_TABLE = '42P01'
const UNDEFINED_SCHEMA = '3F000'

/** A connection, or a pool. */
interface Asked {
  query<R extends object>(statement: { text: string }): Promise<{ rows: R[] }>
}

/** `newer`: a later release has upgraded it, and processes of this release work on it still. */
type SchemaState = 'absent' | 'behind' | 'current' | 'newer'

/**
 * Compares the store's schema with the one of this release. Throws `ConfigError` (exit 78, with what to do) if no process of this
 * release may work on it: it was made before 1.0, or a later release has taken away what this one needs.
 */
export async function schemaState(db: Asked): Promise<SchemaState> {
  const known = await db
    .query<{ name: string }>({
      text: `select name
from tokenmill.kysely_migration
order by name`,
    })
    .catch(error => {
      const { code } = error as { code?: string }
      if (code === UNDEFINED_TABLE || code === UNDEFINED_SCHEMA) return { rows: [] }
      throw error
    })
  const names = known.rows.map(({ name }) => name)
  if (names.length === 0) return 'absent'
  if (names[0] !== MIGRATIONS[0])
    throw new ConfigError(
      'DATABASE_URL: this database was made before release 1.0, which does not read it; make a new one',
    )
  if (names.length < MIGRATIONS.length) return 'behind'
  if (names.length === MIGRATIONS.length) return 'current'
  const { rows } = await db.query<{ from: number }>({
    text: `select readable_from as "from"
from tokenmill.schema_range`,
  })
  if ((rows[0]?.from ?? Number.POSITIVE_INFINITY) <= MIGRATIONS.length) return 'newer'
  throw new ConfigError(
    'DATABASE_URL: the schema is newer than this release can use; deploy the release that upgraded it',
  )
}

/** Throws `ConfigError` (exit 78, with what to do) if processes of this release can't work on the store's schema. */
export async function assertSchema(db: Asked): Promise<void> {
  const state = await schemaState(db)
  if (state === 'absent' || state === 'behind')
    throw new ConfigError('DATABASE_URL: the schema is not up to date; run `tokenmill schema upgrade` first')
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
