// One upgrade of a database at a time: an advisory lock on a connection of its own, held around everything that
// `schema upgrade` makes, files included. It isn't the lock of the migrations, which they take themselves.
import { openClient } from './connection/connection.ts'
import { toStoreFault } from './pool.ts'

const LOCK = `hashtextextended('tokenmill upgrade', 0)`

/** Waits for another upgrade of this database, then runs `work`. */
export async function withUpgradeLock<T>(url: string, work: () => Promise<T>): Promise<T> {
  const client = openClient(url, 'tokenmill upgrade')
  try {
    await client.connect()
    await client.query(`select pg_advisory_lock(${LOCK})`)
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
