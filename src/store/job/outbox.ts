// What is to be told, kept until it was, and for some days after so that it can be told again. Selected by state,
// never by an id that grew: ids commit out of order.
import { resultId } from '../../job/envelope/ids.ts'
import { plains } from '../columns.ts'
import type { Db } from '../pool.ts'

export interface OutboxRow {
  outboxId: number
  clientId: string
  replyTo: string | null
  resultId: string
  receiptId: string
  revision: number
  /** The whole text, where no receipt holds it. */
  body: string | null
  createdAt: number
}

interface Row {
  outbox_id: number
  client_id: string
  reply_to: string | null
  result_id: string | null
  receipt_id: string
  revision: number
  body: string | null
  created_at: number
}

const COLUMNS = 'outbox_id, client_id, reply_to, result_id, receipt_id, revision, body, created_at'

function outboxOf(row: Row): OutboxRow {
  return {
    outboxId: row.outbox_id,
    clientId: row.client_id,
    replyTo: row.reply_to,
    resultId: row.result_id ?? resultId(row.receipt_id, row.revision),
    receiptId: row.receipt_id,
    revision: row.revision,
    body: row.body,
    createdAt: row.created_at,
  }
}

export type NewOutboxRow = Omit<OutboxRow, 'outboxId' | 'createdAt'>

/** Returns the row's id. */
export async function insert(db: Db, row: NewOutboxRow): Promise<number> {
  const { rows } = await db.query<{ outbox_id: number }>({
    name: 'outbox-insert',
    text: `insert into tokenmill.outbox (day, client_id, reply_to, result_id, receipt_id, revision, body)
values (current_date, $1, $2, $3, $4, $5, $6) returning outbox_id`,
    values: [row.clientId, row.replyTo, row.resultId, row.receiptId, row.revision, row.body],
  })
  return rows[0]?.outbox_id ?? 0
}

/**
 * For a statement that writes a receipt: tells it in the same go. `written` is the subquery that holds its revision, the
 * others are parameters of the statement (`$1`).
 */
export function tellReceipt(columns: {
  clientId: string
  replyTo: string
  receiptId: string
  written: string
}): string {
  return `insert into tokenmill.outbox (day, client_id, reply_to, receipt_id, revision)
select current_date, ${columns.clientId}, ${columns.replyTo}, ${columns.receiptId}, revision from ${columns.written}
returning outbox_id, revision`
}

/** The revision that the next thing told of this receipt has. */
export async function nextRevision(db: Db, receiptId: string): Promise<number> {
  const { rows } = await db.query<{ revision: number }>({
    name: 'outbox-next-revision',
    text: 'select coalesce(max(revision), 0) + 1 as revision from tokenmill.outbox where receipt_id = $1',
    values: [receiptId],
  })
  return rows[0]?.revision ?? 1
}

export async function markSent(db: Db, outboxIds: readonly number[]): Promise<void> {
  if (outboxIds.length === 0) return
  await db.query({
    name: 'outbox-sent',
    // What a crash of the database takes of this is told again: nobody waits for the disk.
    text: `update tokenmill.outbox as o set state = 'SENT' from unnest($1::bigint[]) as v(id)
where o.outbox_id = v.id and (select set_config('synchronous_commit', 'off', true)) = 'off'`,
    values: [plains(outboxIds)],
  })
}

/** Queues that have something to be told, oldest first. */
export async function pendingQueues(
  db: Db,
): Promise<{ clientId: string; replyTo: string | null; rows: number; oldest: number }[]> {
  const { rows } = await db.query<{ client_id: string; reply_to: string | null; rows: number; oldest: number }>({
    text: `select client_id, reply_to, count(*) as rows, min(created_at) as oldest from tokenmill.outbox
where state = 'NEW' group by client_id, reply_to order by oldest`,
  })
  return rows.map(row => ({ clientId: row.client_id, replyTo: row.reply_to, rows: row.rows, oldest: row.oldest }))
}

/** Takes up to `limit` rows of one queue, older than `before` (ms), skipping those another process holds. */
export async function take(
  db: Db,
  clientId: string,
  replyTo: string | null,
  before: number,
  limit: number,
): Promise<OutboxRow[]> {
  const { rows } = await db.query<Row>({
    text: `select ${COLUMNS} from tokenmill.outbox where state = 'NEW' and client_id = $1 and reply_to is not distinct from $2
and created_at < $3 order by outbox_id limit $4 for update skip locked`,
    values: [clientId, replyTo, new Date(before), limit],
  })
  return rows.map(outboxOf)
}

/** How many answers wait to be told on one of this client's queues. Events, which nobody asked for, are none. */
export async function pendingOf(db: Db, clientId: string, replyTo: string | null, most: number): Promise<number> {
  const { rows } = await db.query<{ rows: number }>({
    text: `select count(*) as rows from (
  select from tokenmill.outbox where state = 'NEW' and client_id = $1 and reply_to is not distinct from $2
  and result_id is distinct from receipt_id limit $3
) as pending`,
    values: [clientId, replyTo, most],
  })
  return rows[0]?.rows ?? 0
}

/** Tells again what was told since `since` (ms): the default queue's, or one reply queue's. Returns how many. */
export async function replay(db: Db, clientId: string, replyTo: string | null, since: number): Promise<number> {
  const { count } = await db.query({
    text: `update tokenmill.outbox set state = 'NEW' where state = 'SENT' and client_id = $1 and reply_to is not distinct from $2 and created_at >= $3`,
    values: [clientId, replyTo, new Date(since)],
  })
  return count
}

export interface Announcement extends OutboxRow {
  /** NEW: it waits to be published. SENT: it lies in the results queue, or was read from it. */
  state: 'NEW' | 'SENT'
}

/** What was told, or is to be told, of one job, oldest first. Rows are kept for some days. */
export async function listOf(db: Db, receiptId: string): Promise<Announcement[]> {
  const { rows } = await db.query<Row & { state: Announcement['state'] }>({
    text: `select ${COLUMNS}, state from tokenmill.outbox where receipt_id = $1 order by outbox_id`,
    values: [receiptId],
  })
  return rows.map(row => ({ ...outboxOf(row), state: row.state }))
}
