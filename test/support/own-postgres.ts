// A PostgreSQL server for one test file, which stops, kills and starts it again on the same port. No process attaches
// to it as to the embedded server, so only the test starts it again.
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { Client } from 'pg'
import { inject } from 'vitest'
import { findBinaries } from '../../src/embedded/binaries.ts'
import { findPostmaster, initialise, start, stop, USER } from '../../src/embedded/cluster.ts'
import { discard, findClusterLocation } from '../../src/embedded/cluster-location.ts'
import { until } from './until.ts'

export interface OwnPostgres {
  /** The URL of an empty database. */
  url: string
  /** Kills the server at once; what it committed survives. */
  kill9(): Promise<void>
  /** Ends the server; open transactions are rolled back. */
  stop(): Promise<void>
  /** Starts it again on the same port, after `kill9` or `stop`. */
  start(): Promise<void>
  /** Ends it and removes its files. */
  remove(): Promise<void>
}

const DATABASE = 'chaos'
/** How long a start is tried again: until the children of a killed server have ended, its shared memory is in use. */

export async function startPostgres(): Promise<OwnPostgres> {
  const dir = mkdtempSync(join(inject('runDir'), 'own-'))
  // If the test runs as root, the server runs under another account, which must be able to enter the directory.
  chmodSync(dir, 0o711)
  const place = await findClusterLocation(dir)
  const binaries = await findBinaries(place)
  const begin = () => until(() => start(place, binaries), { what: 'the start of PostgreSQL' })
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
