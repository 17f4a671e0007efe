// Takes the store away from an installation for a while, for real: every connection ends, and none is taken.
import pg from 'pg'
import type { ConsoleBundle } from './bundle.ts'

export async function withoutStore(
  { installation }: Pick<ConsoleBundle, 'installation'>,
  work: () => Promise<void>,
): Promise<void> {
  const url = new URL(installation.env['DATABASE_URL'] ?? '')
  const name = url.pathname.slice(1)
  url.pathname = '/postgres'
  const admin = new pg.Client({ connectionString: url.href })
  await admin.connect()
  const admit = (may: boolean) => admin.query(`alter database ${pg.escapeIdentifier(name)} allow_connections ${may}`)
  await admit(false)
  await admin.query('select pg_terminate_backend(pid) from pg_stat_activity where datname = $1', [name])
  try {
    await work()
  } finally {
    await admit(true)
    await admin.end()
  }
}
