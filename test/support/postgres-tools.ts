// Programs that the embedded PostgreSQL doesn't bring: a server release with pg_basebackup, and pgbouncer. Tests that
// need them are skipped where they are absent; REQUIRE_POSTGRES_TOOLS=1 makes that a failure (run/setup.ts).
import { existsSync, readdirSync } from 'node:fs'
import { delimiter, join } from 'node:path'

/** Where Debian keeps them; other systems have them on PATH. */
const DEBIAN = '/usr/lib/postgresql'
const PATHS = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin']

/** The folder of one release that has all it takes to make a standby. */
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

/** What is absent of them, in words; empty where nothing is. */
export function missingTools(): string[] {
  return [
    ...(findServer() ? [] : ['no PostgreSQL with pg_basebackup (Debian: postgresql)']),
    ...(findPgbouncer() ? [] : ['no pgbouncer']),
  ]
}
