// The names of the reply queues that a client has used; their number is limited. src/queue handles the queues
// themselves.
import type { Db, Store } from '../pool.ts'

export const REPLY_QUEUES_MAX = 64

interface ReplyQueue {
  clientId: string
  replyTo: string
  /** ms since the epoch. */
  createdAt: number
}

/**
 * Registers a reply queue. False if the client has reached the limit. Several callers can't exceed it together, because
 * the client's row is locked while its queues are counted.
 */
export async function register(store: Store, clientId: string, replyTo: string): Promise<boolean> {
  if (await isRegistered(store, clientId, replyTo)) return true
  return store.transaction(async db => {
    await db.query({
      text: `select
from tokenmill.client
where client_id = $1
for update`,
      values: [clientId],
    })
    return (await insert(db, clientId, replyTo)) || isRegistered(db, clientId, replyTo)
  })
}

async function isRegistered(db: Db, clientId: string, replyTo: string): Promise<boolean> {
  const { count } = await db.query({
    name: 'reply-queue-find',
    text: `select
from tokenmill.reply_queue
where client_id = $1 and reply_to = $2`,
    values: [clientId, replyTo],
  })
  return count === 1
}

async function insert(db: Db, clientId: string, replyTo: string): Promise<boolean> {
  const { count } = await db.query({
    text: `insert into tokenmill.reply_queue (client_id, reply_to)
select $1, $2
where (select count(*) from tokenmill.reply_queue where client_id = $1) < $3
on conflict (client_id, reply_to) do nothing`,
    values: [clientId, replyTo, REPLY_QUEUES_MAX],
  })
  return count === 1
}

/** Reply queues, oldest first, of one client or of all. */
export async function list(db: Db, clientId: string | null = null): Promise<ReplyQueue[]> {
  const { rows } = await db.query<ReplyQueue>({
    text: `select client_id as "clientId", reply_to as "replyTo", created_at as "createdAt"
from tokenmill.reply_queue
where $1::text is null or client_id = $1
order by created_at, client_id, reply_to`,
    values: [clientId],
  })
  return rows
}

/** Removes the name. False if there is none. */
export async function remove(db: Db, clientId: string, replyTo: string): Promise<boolean> {
  const { count } = await db.query({
    text: `delete from tokenmill.reply_queue
where client_id = $1 and reply_to = $2`,
    values: [clientId, replyTo],
  })
  return count === 1
}
