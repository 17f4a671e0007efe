// Lets one upgrade of a database run at a time: an advisory lock on its own connection, held while `schema upgrade`
// makes tables, keys and files. The migrations take another lock themselves.
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
