// The connections of BullMQ's PostgreSQL engine: one pool per process. They use the role that owns the schema `bullmq`
// and has no rights on tokenmill's schema.
import type pg from 'pg'
import { openClient, openPool } from './connection/connection.ts'
import { toStoreFault } from './pool.ts'

const ROLE = 'tokenmill_queue'

/** Opens the pool. The caller ends it, after the queues that use it. */
export function openQueuePool(url: string, max: number): pg.Pool {
  const settings = { search_path: 'bullmq', role: ROLE }
  return openPool(url, { max, application: 'tokenmill queues', settings }).pool
}

/** Runs `work` on one connection of that role, which may then create its schema. */
export async function withQueueOwner<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = openClient(url, 'tokenmill queue schema')
  try {
    await client.connect()
    // A restored or copied database lacks the rights that the migration granted on the database itself; and `schema
    // login` revokes from everybody the right to make temporary tables, which BullMQ's functions need.
    const { rows } = await client.query<{ may: boolean; name: string }>(
      `select has_database_privilege($1, current_database(), 'CREATE')
  and has_database_privilege($1, current_database(), 'TEMPORARY') as may, quote_ident(current_database()) as name`,
      [ROLE],
    )
    if (rows[0] && !rows[0].may) await client.query(`grant create, temporary on database ${rows[0].name} to ${ROLE}`)
    await client.query(`set role ${ROLE}`)
    return await work(client)
  } catch (error) {
    throw toStoreFault(error)
  } finally {
    await client.end().catch(() => undefined)
  }
}
