// Questions to the store's server itself: whether it answers, whether it takes writes, and its clock. No table is read.
import { assert } from '../errors.ts'
import type { Db, Store } from './pool.ts'

/** Resolves once the server has answered; throws what the pool throws. */
export async function ping(db: Db): Promise<void> {
  await db.query({ text: 'select 1' })
}

/** What a process's health and metrics ask of the store. */
export function watched(store: Store) {
  const { connections, writableServers } = store
  return { ping: () => ping(store), connections, writableServers }
}

/** The server's clock, ms since the epoch. */
export async function readClock(db: Db): Promise<number> {
  const { rows } = await db.query<{ now: number }>({ text: 'select clock_timestamp() as now' })
  const [row] = rows
  assert(row, 'a server has a clock')
  return row.now
}

/** False for a demoted server, which answers and takes no writes. */
export async function isWritable(db: Db): Promise<boolean> {
  const { rows } = await db.query<{ readonly: string }>({
    text: `select current_setting('transaction_read_only') as readonly`,
  })
  return rows[0]?.readonly === 'off'
}
