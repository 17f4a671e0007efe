// Finds programs that don't come with the embedded PostgreSQL: a server release with pg_basebackup, and pgbouncer.
// Tests that need them are skipped if they are missing; with REQUIRE_POSTGRES_TOOLS=1 the run fails (run/setup.ts).
import { existsSync, readdirSync } from 'node:fs'
import { delimiter, join } from 'node:path'

/** Where Debian keeps them; other systems have them on PATH. */
const DEBIAN = '/usr/lib/postgresql'
const PATHS = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin']

/** The folder of a release with all programs that a standby needs; undefined if there is none. */
export function findServer(): string | undefined {
  const releases = existsSync(DEBIAN) ? readdirSync(DEBIAN).sort((a, b) => Number(b) - Number(a)) : []
  const folders = [...releases.map(release => join(DEBIAN, release, 'bin')), ...PATHS]
  return folders.find(dir =>
    ['initdb', 'pg_ctl', 'postgres', 'pg_basebackup'].every(name => existsSync(join(dir, name))),
  )
}

export function findPgbouncer(): string | undefined {
  return PATHS.map(dir => join(dir, 'pgbouncer')).find(path => existsSync(path))
}

/** The missing programs, in words. */
export function missingTools(): string[] {
  return [
    ...(findServer() ? [] : ['no PostgreSQL with pg_basebackup (Debian: postgresql)']),
    ...(findPgbouncer() ? [] : ['no pgbouncer']),
  ]
}
