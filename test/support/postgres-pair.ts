// A primary and a standby that streams from it. The primary waits for the standby at each commit. A test kills,
// promotes and restarts them.
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { Client } from 'pg'
import { inject } from 'vitest'
import type { Binaries } from '../../src/embedded/binaries.ts'
import { findPostmaster, initialise, start, stop, USER } from '../../src/embedded/cluster.ts'
import { type ClusterLocation, findClusterLocation } from '../../src/embedded/cluster-location.ts'
import { run } from '../../src/embedded/command.ts'
import { discard } from '../../src/embedded/server.ts'
import { findServer } from './postgres-tools.ts'
import { until } from './until.ts'

export interface Server {
  port: number
  /** The URL of this server alone. */
  url: string
  start(): Promise<void>
  kill9(): Promise<void>
  /** Ends the server without killing it. */
  stop(): Promise<void>
  ask<R>(text: string): Promise<R[]>
}

export interface PostgresPair {
  primary: Server
  standby: Server
  /** The URL that names both servers. */
  url: string
  /** The standby becomes a primary, on a new timeline. */
  promote(): Promise<void>
  remove(): Promise<void>
}

const DATABASE = 'pair'

export async function startPair(): Promise<PostgresPair> {
  const bin = findServer() ?? ''
  const binaries = { initdb: join(bin, 'initdb'), pgCtl: join(bin, 'pg_ctl') }
  const dirs = [0, 1].map(() => mkdtempSync(join(inject('runDir'), 'pair-')))
  // If the test runs as root, the servers run under another account, which must be able to enter the directories.
  for (const dir of dirs) chmodSync(dir, 0o711)
  const [first, second] = await Promise.all(dirs.map(findClusterLocation))
  if (!first || !second) throw new Error('two places')
  const password = first.password.reveal()
  await initialise(first, binaries)
  const primary = await open(first, binaries, password, 'postgres')
  await primary.ask(`create database ${DATABASE}`)
  const from = `host=127.0.0.1 port=${primary.port} user=${USER} password=${password}`
  const copied = await run(
    join(bin, 'pg_basebackup'),
    ['-D', second.cluster, '-d', from, '-R', '-X', 'stream', '-c', 'fast'],
    second.account,
  )
  if (copied.code !== 0) throw new Error(copied.output)
  const standby = await open(second, binaries, password, DATABASE)
  await primary.ask(`alter system set synchronous_standby_names = '*'`)
  await primary.ask('select pg_reload_conf()')
  const isSynchronous = async () =>
    (await primary.ask(`select 1 from pg_stat_replication where sync_state = 'sync'`)).length === 1
  await until(isSynchronous, { what: 'a synchronous standby' })
  const hosts = [primary, standby].map(({ port }) => `127.0.0.1:${port}`)
  return {
    primary: { ...primary, ...client(first, password, DATABASE) },
    standby,
    url: `postgresql://${USER}:${password}@${hosts}/${DATABASE}?target_session_attrs=read-write`,
    async promote() {
      const { code, output } = await run(binaries.pgCtl, ['-D', second.cluster, '-w', 'promote'], second.account)
      if (code !== 0) throw new Error(output)
    },
    async remove() {
      for (const place of [first, second]) if (findPostmaster(place)) await stop(place, binaries)
      for (const dir of dirs) {
        discard(dir)
        rmSync(dir, { recursive: true, force: true })
      }
    },
  }
}

async function open(place: ClusterLocation, binaries: Binaries, password: string, database: string): Promise<Server> {
  const begin = async () => {
    await until(() => start(place, binaries), { what: 'the start of PostgreSQL' })
  }
  await begin()
  return {
    ...client(place, password, database),
    port: findPostmaster(place)?.port ?? -1,
    start: begin,
    async kill9() {
      const running = findPostmaster(place)
      if (running) process.kill(running.pid, 'SIGKILL')
      await until(() => findPostmaster(place) === undefined, { what: 'the end of PostgreSQL' })
    },
    stop: () => stop(place, binaries),
  }
}

function client(place: ClusterLocation, password: string, database: string): Pick<Server, 'url' | 'ask'> {
  const url = `postgresql://${USER}:${password}@127.0.0.1:${findPostmaster(place)?.port}/${database}`
  return {
    url,
    async ask<R>(text: string) {
      const asking = new Client({ connectionString: url })
      await asking.connect()
      try {
        return (await asking.query(text)).rows as R[]
      } finally {
        await asking.end()
      }
    },
  }
}
