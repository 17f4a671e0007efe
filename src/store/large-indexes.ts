// Indexes of large tables. PostgreSQL builds one beside running jobs only outside of a transaction, so no migration
// can. Each upgrade looks whether they are there, and builds again those whose build failed.
import type pg from 'pg'
import type { LargeIndex, Tables } from './tables.ts'

/** Builds what is missing. `builds` is called with the name of each index before it is built. */
export async function ensureAll(
  pool: pg.Pool,
  tables: readonly Tables[],
  builds: (name: string) => void,
): Promise<void> {
  const client = await pool.connect()
  try {
    // To build an index, PostgreSQL reads the whole table, and waits for every transaction that is open.
    await client.query('set statement_timeout = 0')
    for (const index of tables.flatMap(({ indexes }) => indexes ?? [])) await ensure(client, index, builds)
  } finally {
    // Closes the connection, whose time limit was changed.
    client.release(true)
  }
}

async function ensure(client: pg.ClientBase, { name, on }: LargeIndex, builds: (name: string) => void): Promise<void> {
  const { rows } = await client.query<{ valid: boolean }>(
    `select indisvalid as valid
from pg_index
where indexrelid = to_regclass($1)`,
    [`tokenmill.${name}`],
  )
  if (rows[0]?.valid) return
  builds(name)
  // A build that failed leaves an index that is written and never read.
  if (rows[0]) await client.query(`drop index concurrently tokenmill.${name}`)
  await client.query(`create index concurrently ${name} on ${on}`)
}
