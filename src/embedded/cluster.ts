// One cluster on disk and its postmaster: make it, start it, stop it, say whether it runs. postmaster.pid is the truth.
// It knows nothing of connections; who may use or stop the server is decided in server.ts.
import { randomBytes } from 'node:crypto'
import {
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { ConfigError } from '../config.ts'
import { Fault } from '../errors.ts'
import { type Binaries, majorVersion } from './binaries.ts'
import type { Place } from './cluster-location.ts'
import { run } from './command.ts'

export const USER = 'tokenmill'

export interface Postmaster {
  pid: number
  port: number
}

const HOST = '127.0.0.1'
const LOG_BYTES_MAX = 8 * 1024 * 1024
const START_SECONDS_MAX = 60
const STOP_SECONDS_MAX = 60
/** How long the last port is waited for. */
const PORT_MS_MAX = 2_000
const PORT_PAUSE_MS = 50

/** For token work on two cores. ERROR lines stay out of the log: their detail quotes rows. */
const SETTINGS = {
  listen_addresses: HOST,
  unix_socket_directories: '',
  max_connections: '200',
  shared_buffers: '256MB',
  // After each checkpoint every page that a migration touches goes into the WAL whole once more, so checkpoints are
  // forced seldom (docs/performance.md).
  max_wal_size: '8GB',
  min_wal_size: '256MB',
  checkpoint_timeout: '15min',
  fsync: 'on',
  synchronous_commit: 'on',
  // This build has no lz4 or zstd, and pglz costs more CPU than the WAL it saves.
  wal_compression: 'off',
  random_page_cost: '1.1',
  jit: 'off',
  timezone: 'UTC',
  log_timezone: 'UTC',
  log_min_messages: 'log',
  log_min_error_statement: 'panic',
  log_error_verbosity: 'terse',
  log_checkpoints: 'off',
}

/** Throws `ConfigError` where another major version made the cluster. False: there is no cluster yet. */
export function isInitialised(place: Place): boolean {
  const file = join(place.cluster, 'PG_VERSION')
  if (!existsSync(file)) return false
  const found = readFileSync(file, 'utf8').trim()
  const ours = majorVersion()
  if (found === ours) return true
  throw new ConfigError(
    `TOKENMILL_DATA_DIR: ${place.cluster} was made by PostgreSQL ${found}, this release embeds ${ours}; use the release that made it to move the data, or another directory`,
  )
}

/** Makes the cluster. Of several processes at once one wins, because a directory is renamed whole or not at all. */
export async function initialise(place: Place, { initdb }: Binaries): Promise<void> {
  const draft = join(place.dir, `init-${process.pid}-${randomBytes(4).toString('hex')}`)
  const passwordFile = join(draft, 'password')
  mkdirSync(draft, { mode: 0o700 })
  try {
    writeFileSync(passwordFile, `${place.password.reveal()}\n`, { mode: 0o600 })
    if (place.account) for (const path of [draft, passwordFile]) chownSync(path, place.account.uid, place.account.gid)
    const made = join(draft, 'data')
    const { code, output } = await run(
      initdb,
      [
        `--pgdata=${made}`,
        `--username=${USER}`,
        `--pwfile=${passwordFile}`,
        '--auth=scram-sha-256',
        '--encoding=UTF8',
        '--locale=C',
        '--data-checksums',
        '--no-instructions',
      ],
      place.account,
    )
    if (code !== 0) throw new Fault('store_away', new Error(`initdb failed: ${output}`))
    renameSync(made, place.cluster)
  } catch (error) {
    if (!existsSync(place.cluster)) throw error
  } finally {
    rmSync(draft, { recursive: true, force: true })
    clearDrafts(place)
  }
}

/** What processes killed in the midst of `initialise` left behind. */
function clearDrafts(place: Place): void {
  for (const name of readdirSync(place.dir)) {
    const pid = Number(/^init-(\d+)-/.exec(name)?.[1])
    if (pid > 0 && !isAlive(pid)) rmSync(join(place.dir, name), { recursive: true, force: true })
  }
}

/** The postmaster of this cluster, in whatever state it is; undefined where none runs. */
export function findPostmaster(place: Place): Postmaster | undefined {
  const [pid, , , port] = readPidFile(place)?.split('\n') ?? []
  const found = { pid: Number(pid), port: Number(port) }
  return isPostmaster(place, found.pid) ? found : undefined
}

/**
 * Starts the server, on the port it had last where that is free. False where it didn't come up: raced, or ill.
 * `settings` replace ours.
 */
export async function start(
  place: Place,
  { pgCtl }: Binaries,
  settings: Partial<Record<keyof typeof SETTINGS, string>> = {},
): Promise<boolean> {
  removeStalePidFile(place)
  turnLog(place)
  const port = await choosePort(place)
  const options = Object.entries({ port, ...SETTINGS, ...settings }).map(([name, value]) => `-c ${name}='${value}'`)
  const { code } = await run(
    pgCtl,
    ['-D', place.cluster, '-l', place.serverLog, '-w', '-t', `${START_SECONDS_MAX}`, '-o', options.join(' '), 'start'],
    place.account,
  )
  return code === 0
}

/** Disconnects everybody, rolls back what is open, and waits for the end. */
export async function stop(place: Place, { pgCtl }: Binaries): Promise<void> {
  const args = ['-D', place.cluster, '-w', '-t', `${STOP_SECONDS_MAX}`, '-m', 'fast', 'stop']
  const { code, output } = await run(pgCtl, args, place.account)
  if (code !== 0 && findPostmaster(place)) throw new Fault('store_away', new Error(`pg_ctl stop failed: ${output}`))
}

function readPidFile(place: Place): string | undefined {
  try {
    return readFileSync(join(place.cluster, 'postmaster.pid'), 'utf8')
  } catch {
    return undefined
  }
}

/**
 * After a reboot or in a new container the pid in a stale file can be another process's, and a killed postmaster that
 * nobody reaps stays a zombie: PostgreSQL then believes that the cluster is in use and would never start again.
 */
function removeStalePidFile(place: Place): void {
  const before = readPidFile(place)
  const pid = Number(before?.split('\n')[0])
  if (!(pid > 0) || !isAlive(pid) || isPostmaster(place, pid)) return
  if (readPidFile(place) === before) unlinkSync(join(place.cluster, 'postmaster.pid'))
}

function isPostmaster(place: Place, pid: number): boolean {
  if (!(pid > 0) || !isAlive(pid)) return false
  if (!existsSync('/proc/self/cmdline')) return true
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').includes(place.cluster)
  } catch {
    return false
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/** The last port again, so that pools of processes that outlived the server find it; postmaster.opts remembers it. */
async function choosePort(place: Place): Promise<number> {
  const opts = join(place.cluster, 'postmaster.opts')
  const last = existsSync(opts) ? /port='?(\d+)/.exec(readFileSync(opts, 'utf8'))?.[1] : undefined
  // The sockets of a server that was just killed are in the way for a moment.
  for (const deadline = Date.now() + PORT_MS_MAX; last && Date.now() < deadline; await pause(PORT_PAUSE_MS)) {
    if (await listenOnce(Number(last))) return Number(last)
  }
  return listenOnce(0)
}

/** The port if it could be bound (0: any), else 0. */
function listenOnce(port: number): Promise<number> {
  return new Promise(resolve => {
    const server = createServer()
    server.once('error', () => resolve(0))
    server.listen({ host: HOST, port, exclusive: true }, () => {
      const address = server.address()
      server.close(() => resolve(typeof address === 'object' && address ? address.port : 0))
    })
  })
}

function turnLog(place: Place): void {
  const size = statSync(place.serverLog, { throwIfNoEntry: false })?.size ?? 0
  if (size > LOG_BYTES_MAX) renameSync(place.serverLog, `${place.serverLog}.1`)
}
