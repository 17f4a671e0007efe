// Lets one upgrade of a database run at a time: an advisory lock on its own connection, held while `schema upgrade`
// makes tables, keys and files. The migrations take another lock themselves.
import { setTimeout as pause } from 'node:timers/promises'
import type pg from 'pg'
import { openClient } from './connection/connection.ts'
import { toStoreFault } from './pool.ts'

const LOCK = `hashtextextended('tokenmill upgrade', 0)`
const PAUSE_MS = 100

/** Waits for another upgrade of this database, then runs `work`. */
export async function withUpgradeLock<T>(url: string, work: () => Promise<T>): Promise<T> {
  const client = openClient(url, 'tokenmill upgrade')
  try {
    await client.connect()
    // Polls for the lock: an upgrade in another process builds indexes, which wait for all running statements. A
    // statement that waits for the lock would be one of these.
    while (!(await tryLock(client))) await pause(PAUSE_MS)
  } catch (error) {
    await client.end().catch(() => undefined)
    throw toStoreFault(error)
  }
  try {
    return await work()
  } finally {
    await client.end().catch(() => undefined)
  }
}

async function tryLock(client: pg.Client): Promise<boolean> {
  const { rows } = await client.query<{ held: boolean }>(`select pg_try_advisory_lock(${LOCK}) as held`)
  return rows[0]?.held === true
}
