// One PostgreSQL cluster on disk and its postmaster: makes the cluster, starts it, stops it, says whether it runs. It
// runs if the process that postmaster.pid names is alive and is its postmaster. Connections are no concern here;
// server.ts decides who may use or stop the server.
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
import type { ClusterLocation } from './cluster-location.ts'
import { run } from './command.ts'
import { walSizeOf } from './wal-size.ts'

export const USER = 'tokenmill'

export interface Postmaster {
  pid: number
  port: number
}

const HOST = '127.0.0.1'
const LOG_BYTES_MAX = 8 * 1024 * 1024
const START_SECONDS_MAX = 60
const STOP_MS_MAX = 60_000
const STOP_PAUSE_MS = 20
/** How long to wait until the port of the last start is free again. */
const PORT_MS_MAX = 2_000
const PORT_PAUSE_MS = 50

/** Server settings for token work on two cores. ERROR lines are not logged, because their detail quotes rows. */
const SETTINGS = {
  listen_addresses: HOST,
  unix_socket_directories: '',
  max_connections: '200',
  shared_buffers: '256MB',
  min_wal_size: '256MB',
  // The first change of a page after a checkpoint writes the whole page to the WAL (docs/performance.md).
  checkpoint_timeout: '30min',
  fsync: 'on',
  synchronous_commit: 'on',
  // This build has no lz4 or zstd, and pglz costs more CPU time than the smaller WAL saves.
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

/** Whether the cluster exists. Throws `ConfigError` if another major version of PostgreSQL made it. */
export function isInitialised(location: ClusterLocation): boolean {
  const file = join(location.cluster, 'PG_VERSION')
  if (!existsSync(file)) return false
  const found = readFileSync(file, 'utf8').trim()
  const ours = majorVersion()
  if (found === ours) return true
  throw new ConfigError(
    `TOKENMILL_DATA_DIR: ${location.cluster} was made by PostgreSQL ${found}, this release embeds ${ours}; use the release that made it to move the data, or another directory`,
  )
}

/**
 * Makes the cluster. Several processes may try at once: each makes a draft and renames it as a whole, and only one
 * rename succeeds.
 */
export async function initialise(location: ClusterLocation, { initdb }: Binaries): Promise<void> {
  const draft = join(location.dir, `init-${process.pid}-${randomBytes(4).toString('hex')}`)
  const passwordFile = join(draft, 'password')
  mkdirSync(draft, { mode: 0o700 })
  try {
    writeFileSync(passwordFile, `${location.password.reveal()}\n`, { mode: 0o600 })
    if (location.account)
      for (const path of [draft, passwordFile]) chownSync(path, location.account.uid, location.account.gid)
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
      location.account,
    )
    if (code !== 0) throw new Fault('store_away', new Error(`initdb failed: ${output}`))
    renameSync(made, location.cluster)
  } catch (error) {
    if (!existsSync(location.cluster)) throw error
  } finally {
    rmSync(draft, { recursive: true, force: true })
    clearDrafts(location)
  }
}

/** Removes the drafts of processes that were killed during `initialise`. */
function clearDrafts(location: ClusterLocation): void {
  for (const name of readdirSync(location.dir)) {
    const pid = Number(/^init-(\d+)-/.exec(name)?.[1])
    if (pid > 0 && !isAlive(pid)) rmSync(join(location.dir, name), { recursive: true, force: true })
  }
}

/** The postmaster of this cluster, in any state; undefined if none runs. */
export function findPostmaster(location: ClusterLocation): Postmaster | undefined {
  const [pid, , , port] = readPidFile(location)?.split('\n') ?? []
  const found = { pid: Number(pid), port: Number(port) }
  return isPostmaster(location, found.pid) ? found : undefined
}

/**
 * Starts the server, on the port of its last start if that port is free. Returns false if the server didn't come up.
 * `settings` replace the cluster's own.
 */
export async function start(
  location: ClusterLocation,
  { pgCtl }: Binaries,
  settings: Partial<Record<keyof typeof SETTINGS | 'max_wal_size', string>> = {},
): Promise<boolean> {
  removeStalePidFile(location)
  turnLog(location)
  const port = await choosePort(location)
  const own = { ...SETTINGS, port, max_wal_size: walSizeOf(location.cluster) }
  const options = Object.entries({ ...own, ...settings }).map(([name, value]) => `-c ${name}='${value}'`)
  const { code } = await run(
    pgCtl,
    [
      '-D',
      location.cluster,
      '-l',
      location.serverLog,
      '-w',
      '-t',
      `${START_SECONDS_MAX}`,
      '-o',
      options.join(' '),
      'start',
    ],
    location.account,
  )
  return code === 0
}

/**
 * Stops the server: disconnects all clients, rolls back open transactions, and waits until the server has ended. Another
 * process may start the next one at that moment. So this waits for the process, where pg_ctl would wait for
 * postmaster.pid, which the next server writes again.
 */
export async function stop(location: ClusterLocation, { pgCtl }: Binaries): Promise<void> {
  const stopped = findPostmaster(location)
  if (!stopped) return
  const { code, output } = await run(pgCtl, ['-D', location.cluster, '-W', '-m', 'fast', 'stop'], location.account)
  for (const deadline = Date.now() + STOP_MS_MAX; isPostmaster(location, stopped.pid); await pause(STOP_PAUSE_MS)) {
    if (code !== 0) throw new Fault('store_away', new Error(`pg_ctl stop failed: ${output}`))
    if (Date.now() > deadline)
      throw new Fault('store_away', new Error(`the embedded PostgreSQL did not stop; see ${location.serverLog}`))
  }
}

function readPidFile(location: ClusterLocation): string | undefined {
  try {
    return readFileSync(join(location.cluster, 'postmaster.pid'), 'utf8')
  } catch {
    return undefined
  }
}

/**
 * Removes a stale postmaster.pid. After a reboot or in a new container its pid can belong to another process, and a
 * killed postmaster that no parent reaps stays a zombie: PostgreSQL would then believe that the cluster is in use and
 * never start again.
 */
function removeStalePidFile(location: ClusterLocation): void {
  const before = readPidFile(location)
  const pid = Number(before?.split('\n')[0])
  if (!(pid > 0) || !isAlive(pid) || isPostmaster(location, pid)) return
  if (readPidFile(location) === before) unlinkSync(join(location.cluster, 'postmaster.pid'))
}

function isPostmaster(location: ClusterLocation, pid: number): boolean {
  if (!(pid > 0) || !isAlive(pid)) return false
  if (!existsSync('/proc/self/cmdline')) return true
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').includes(location.cluster)
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

/**
 * The port of the last start, which postmaster.opts holds, so that connection pools of running processes find the
 * server again; any free port if that one stays taken.
 */
async function choosePort(location: ClusterLocation): Promise<number> {
  const opts = join(location.cluster, 'postmaster.opts')
  const last = existsSync(opts) ? /port='?(\d+)/.exec(readFileSync(opts, 'utf8'))?.[1] : undefined
  // The sockets of a server that was just killed block the port for a moment.
  for (const deadline = Date.now() + PORT_MS_MAX; last && Date.now() < deadline; await pause(PORT_PAUSE_MS)) {
    if (await listenOnce(Number(last))) return Number(last)
  }
  return listenOnce(0)
}

/** Returns the port if it could be bound (0: any free port), else 0. */
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

function turnLog(location: ClusterLocation): void {
  const size = statSync(location.serverLog, { throwIfNoEntry: false })?.size ?? 0
  if (size > LOG_BYTES_MAX) renameSync(location.serverLog, `${location.serverLog}.1`)
}
