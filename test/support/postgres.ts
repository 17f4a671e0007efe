// A database per suite, cloned from a template on the one PostgreSQL of the run, which is the embedded server.
import { randomBytes } from 'node:crypto'
import { chmodSync, existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Client } from 'pg'
import { inject } from 'vitest'
import { findBinaries } from '../../src/embedded/binaries.ts'
import { initialise, start } from '../../src/embedded/cluster.ts'
import { findClusterLocation } from '../../src/embedded/cluster-location.ts'
import { attach } from '../../src/embedded/server.ts'
import { prepareTemplate } from './template.ts'
import { until } from './until.ts'

export interface FreshDatabase {
  url: string
  /**
   * Throws if connections to it were left open. `force`: doesn't throw, for tests that kill the processes which held
   * connections.
   */
  drop(options?: { force?: boolean }): Promise<void>
}

const TEMPLATE = 'test_template'
const LOCK = 7_331
const LEFT_OPEN_MS_MAX = 60_000

let started: Promise<string> | undefined
let prepared: Promise<void> | undefined

const clones = new Set<string>()

/** Whether `freshDatabase` made it with the schema in place. */
export const isCloned = (url: string): boolean => clones.has(url)

/** Makes a database with the schema in place, or an empty one. */
export async function freshDatabase(options: { empty?: boolean } = {}): Promise<FreshDatabase> {
  started ??= startServer()
  const server = await started
  if (!options.empty) {
    prepared ??= onServer(server, client => ensureTemplate(client, server))
    await prepared
  }
  const name = `test_${process.pid}_${randomBytes(5).toString('hex')}`
  await onServer(server, client =>
    client.query(`create database ${name} template ${options.empty ? 'template0' : TEMPLATE} strategy file_copy`),
  )
  const url = urlOf(server, name)
  if (!options.empty) clones.add(url)
  return {
    url,
    drop: ({ force = false } = {}) => onServer(server, client => drop(client, name, force)),
  }
}

/**
 * All files of a run share the server, so it admits many connections and doesn't wait for the disk. No test kills it:
 * suites that kill a PostgreSQL start their own.
 */
const SHARED = { max_connections: '400', fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' }

/** This process stays attached to the server until it ends, because the run stops the server. */
async function startServer(): Promise<string> {
  const dir = join(inject('runDir'), 'postgres')
  const ready = `${dir}.ready`
  // The first file that asks starts the server with these settings: attaching to a stopped server would start it with
  // others.
  if (makeDirectory(dir)) {
    const place = await findClusterLocation(dir)
    const binaries = await findBinaries(place)
    await initialise(place, binaries)
    await until(() => start(place, binaries, SHARED), { what: 'the start of PostgreSQL' })
    const { url } = await attach(dir)
    await onServer(url, quickenLogins)
    writeFileSync(ready, '')
    return url
  }
  await until(() => existsSync(ready), { what: 'the PostgreSQL of the run' })
  return (await attach(dir)).url
}

/** Reduces the hashing of the password to one iteration from 4,096: a run logs in thousands of times. */
async function quickenLogins(client: Client): Promise<void> {
  const { user, password } = client
  await client.query('set scram_iterations = 1')
  await client.query(
    `alter role ${client.escapeIdentifier(user ?? '')} password ${client.escapeLiteral(String(password))}`,
  )
}

/** Makes the directory; false if another file made it. */
function makeDirectory(dir: string): boolean {
  try {
    mkdirSync(dir)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
  // If the test runs as root, the server runs under another account, which must be able to enter the directory.
  chmodSync(dir, 0o711)
  return true
}

async function ensureTemplate(client: Client, url: string): Promise<void> {
  // Test files run in separate processes: one of them makes the template, the others wait for the lock.
  await client.query('select pg_advisory_lock($1)', [LOCK])
  const { rows } = await client.query('select datistemplate as ready from pg_database where datname = $1', [TEMPLATE])
  if (rows[0]?.ready) return
  await client.query(`drop database if exists ${TEMPLATE} with (force)`)
  await client.query(`create database ${TEMPLATE} template template0`)
  await prepareTemplate(urlOf(url, TEMPLATE))
  await client.query(`alter database ${TEMPLATE} is_template true allow_connections false`)
}

async function drop(client: Client, name: string, force: boolean): Promise<void> {
  const open = async () => {
    const { rows } = await client.query('select application_name as name from pg_stat_activity where datname = $1', [
      name,
    ])
    return rows.map(row => row.name as string)
  }
  // A pool ends before the server has ended its connections.
  const isClosed = async () => (await open()).length === 0
  const left = force || (await until(isClosed, { ms: LEFT_OPEN_MS_MAX }).catch(() => false)) ? [] : await open()
  await client.query(`drop database if exists ${name} with (force)`)
  if (left.length > 0) throw new Error(`left open: ${left.length} connection(s) to the database (${left.join(', ')})`)
}

function urlOf(server: string, database: string): string {
  const url = new URL(server)
  url.pathname = `/${database}`
  return url.href
}

async function onServer<T>(url: string, work: (client: Client) => Promise<T>): Promise<T> {
  const client = new Client({ connectionString: urlOf(url, 'postgres'), application_name: 'test support' })
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}
