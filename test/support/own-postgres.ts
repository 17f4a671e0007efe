// A PostgreSQL server of one test file's own, to be stopped, killed and started again on the same port. Nobody is
// attached to it, so nothing starts it behind the test's back: that the embedded one mends itself is tested elsewhere.
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { Client } from 'pg'
import { inject } from 'vitest'
import { findBinaries } from '../../src/embedded/binaries.ts'
import { findPostmaster, initialise, start, stop, USER } from '../../src/embedded/cluster.ts'
import { discard, findClusterLocation } from '../../src/embedded/cluster-location.ts'
import { until } from './until.ts'

export interface OwnPostgres {
  /** Of an empty database. */
  url: string
  /** The server and everything it was doing die at once; what it committed survives. */
  kill9(): Promise<void>
  /** Ends it in order, rolling back what is open. */
  stop(): Promise<void>
  /** Starts it again on the same port, after `kill9` or `stop`. */
  start(): Promise<void>
  /** Ends it and removes its files. */
  remove(): Promise<void>
}

const DATABASE = 'chaos'
/** A killed server's children end by themselves; until they have, its shared memory is in use. */
const RESTART_MS_MAX = 60_000

export async function startPostgres(): Promise<OwnPostgres> {
  const dir = mkdtempSync(join(inject('runDir'), 'own-'))
  // As root, the server's account has to get through.
  chmodSync(dir, 0o711)
  const place = await findClusterLocation(dir)
  const binaries = await findBinaries(place)
  const begin = () => until(() => start(place, binaries), { ms: RESTART_MS_MAX, what: 'the start of PostgreSQL' })
  await initialise(place, binaries)
  await begin()
  const port = findPostmaster(place)?.port
  const urlOf = (database: string) => `postgresql://${USER}:${place.password.reveal()}@127.0.0.1:${port}/${database}`
  const client = new Client({ connectionString: urlOf('postgres') })
  await client.connect()
  await client.query(`create database ${DATABASE}`)
  await client.end()
  return {
    url: urlOf(DATABASE),
    async kill9() {
      const running = findPostmaster(place)
      if (running) process.kill(running.pid, 'SIGKILL')
      await until(() => findPostmaster(place) === undefined, { what: 'the end of PostgreSQL' })
    },
    stop: () => stop(place, binaries),
    async start() {
      await begin()
      const now = findPostmaster(place)?.port
      if (now !== port) throw new Error(`PostgreSQL came back on port ${now} instead of ${port}`)
    },
    async remove() {
      if (findPostmaster(place)) await stop(place, binaries)
      discard(dir)
      rmSync(dir, { recursive: true, force: true })
    },
  }
}
