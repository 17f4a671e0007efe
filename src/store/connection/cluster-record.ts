// The row that names the PostgreSQL server (system id) of this store and the highest timeline that was seen. `schema
// upgrade` writes it, and so does a process that finds a later timeline, if its user may. Every copy of the store
// contains it.
import type pg from 'pg'
import type { Recorded, ServerState } from './server-state.ts'

type Asking = Pick<pg.Client, 'query'>

/** The recorded server; undefined if there is no row, no table yet, or no right to read it. */
export async function read(client: Asking): Promise<Recorded | undefined> {
  try {
    const { rows } = await client.query<{ system: string; timeline: string }>(
      `select system_identifier as system, timeline
from tokenmill.cluster`,
    )
    return rows[0] && { system: rows[0].system, timeline: Number(rows[0].timeline) }
  } catch (error) {
    const { code } = error as { code?: string }
    if (code === '42P01' || code === '42501' || code === '3F000') return undefined
    throw error
  }
}

/** Records that the installation's store is on this server. */
export async function adopt(client: Asking, { system, timeline }: ServerState): Promise<void> {
  await client.query(
    `insert into tokenmill.cluster as known (system_identifier, timeline)
     values ($1, $2)
     on conflict (singleton) do update
     set system_identifier = excluded.system_identifier, seen_at = now(),
       timeline = case when known.system_identifier = excluded.system_identifier
         then greatest(known.timeline, excluded.timeline) else excluded.timeline end`,
    [system, timeline],
  )
}

/**
 * Records a later timeline. A user without the right to write leaves that to others. The commit doesn't wait for a
 * standby: after a promotion there may be none.
 */
export async function advance(client: Asking, { timeline }: ServerState): Promise<void> {
  await client
    .query(
      `begin; set local synchronous_commit = local;
       update tokenmill.cluster set timeline = ${Number(timeline)}, seen_at = now() where timeline < ${Number(timeline)};
       commit`,
    )
    .catch(() => undefined)
}
