// The outbox: results and events that are to be published. Published rows are kept for some days, so that they can be
// published again. They are selected by state, never by "id greater than": transactions don't commit in the order of
// their ids.
import { resultId } from '../../job/envelope/ids.ts'
import { type Code, type Coded, type Coder, codeOf, isCoded } from '../codes.ts'
import { type Column, plains, rowSet } from '../columns.ts'
import type { Db } from '../pool.ts'

export interface OutboxRow extends Coded {
  outboxId: number
  clientId: string
  replyTo: string | null
  resultId: string
  receiptId: string
  revision: number
  /** The envelope that the result answers; null for an event. */
  envelopeDigest: Buffer | null
  /** The digest of what that envelope asks for, as the result names it; null for an event, or if it isn't known. */
  answers: Buffer | null
  /** The whole text; null if the receipt holds it. */
  body: string | null
  createdAt: number
  /** The span in which the result was made, as `traceparent`; null if it was published at once or isn't traced. */
  traceparent: string | null
}

const COLUMNS = `
  outbox_id as "outboxId",
  client_id as "clientId",
  reply_to as "replyTo",
  result_id as "resultId",
  receipt_id as "receiptId",
  revision,
  envelope_digest as "envelopeDigest",
  answers,
  body,
  created_at as "createdAt",
  traceparent,
  mac,
  mac_version as "macVersion"`

/** A result that was written with its receipt has no id of its own in its row. */
type Row = Omit<OutboxRow, 'resultId'> & { resultId: string | null }

/** A row that points to a receipt is told under the id that follows from it, whatever the row says. */
function outboxOf<R extends Row>(row: R): R & OutboxRow {
  const own = row.body === null ? null : row.resultId
  return { ...row, resultId: own ?? resultId(row.receiptId, row.revision) }
}

/** What decides of a row. */
type Telling = Pick<
  OutboxRow,
  'clientId' | 'replyTo' | 'resultId' | 'receiptId' | 'revision' | 'envelopeDigest' | 'answers' | 'body'
>
/** What decides of a row that points to a receipt. */
export type Pointing = Omit<Telling, 'resultId' | 'revision' | 'body'> & { body: null }

/**
 * What the code of a row covers. The revision of a row that points to a receipt isn't known yet when the row is coded; a reader
 * keeps the highest.
 */
export function textOf(row: Telling | Pointing): string {
  const { clientId, replyTo, receiptId, envelopeDigest, answers } = row
  return JSON.stringify([
    'outbox/1',
    clientId,
    replyTo,
    receiptId.toLowerCase(),
    envelopeDigest?.toString('base64url') ?? null,
    answers?.toString('base64url') ?? null,
    ...('resultId' in row && row.body !== null ? [row.resultId.toLowerCase(), row.revision, row.body] : []),
  ])
}

/** Whether tokenmill wrote the row as it is. Throws `Fault('key_unavailable')` for a key that this process doesn't have yet. */
export function isProved(coder: Pick<Coder, 'receiptMacBy'>, row: OutboxRow): boolean {
  return isCoded(coder, textOf(row), row)
}

type NewOutboxRow = Omit<
  OutboxRow,
  'outboxId' | 'createdAt' | 'traceparent' | 'envelopeDigest' | 'answers' | keyof Coded
> & {
  /** Both are absent for an event. */
  envelopeDigest?: Buffer
  answers?: Buffer | null
}

const binary = (value: Buffer | null | undefined) => (value ? `\\x${value.toString('hex')}` : null)

const NEW_COLUMNS: readonly Column<NewOutboxRow & Code>[] = [
  { name: 'result_id', type: 'uuid', text: row => row.resultId, plain: true },
  { name: 'client_id', type: 'text', text: row => row.clientId, plain: false },
  { name: 'reply_to', type: 'text', text: row => row.replyTo, plain: false },
  { name: 'receipt_id', type: 'uuid', text: row => row.receiptId, plain: true },
  { name: 'revision', type: 'integer', text: row => row.revision, plain: true },
  {
    name: 'envelope_digest',
    type: 'bytea',
    text: row => binary(row.envelopeDigest),
    plain: false,
  },
  {
    name: 'answers',
    type: 'bytea',
    text: row => binary(row.answers),
    plain: false,
  },
  { name: 'body', type: 'text', text: row => row.body, plain: false },
  { name: 'mac', type: 'bytea', text: row => binary(row.mac), plain: false },
  { name: 'mac_version', type: 'smallint', text: row => row.macVersion, plain: true },
]

/** Inserts rows and returns their ids in the same order. A result may occur only once in `rows`. */
export async function insertAll(db: Db, coder: Coder, rows: readonly NewOutboxRow[]): Promise<number[]> {
  if (rows.length === 0) return []
  const coded = rows.map(row => ({ ...row, ...codeOf(coder, newTextOf(row)) }))
  const { shape, source, values } = rowSet(NEW_COLUMNS, coded)
  const inserted = await db.query<Pick<OutboxRow, 'outboxId' | 'resultId'>>({
    name: `outbox-insert-${shape}`,
    text: `insert into tokenmill.outbox (
  day,
  result_id,
  client_id,
  reply_to,
  receipt_id,
  revision,
  envelope_digest,
  answers,
  body,
  mac,
  mac_version
)
select
  now()::date,
  v.result_id,
  v.client_id,
  v.reply_to,
  v.receipt_id,
  v.revision,
  v.envelope_digest,
  v.answers,
  v.body,
  v.mac,
  v.mac_version
from ${source}
returning outbox_id as "outboxId", result_id as "resultId"`,
    values,
  })
  const ids = new Map(inserted.rows.map(row => [row.resultId, row.outboxId]))
  return rows.map(({ resultId }) => ids.get(resultId) ?? 0)
}

function newTextOf(row: NewOutboxRow): string {
  const { envelopeDigest = null, answers = null } = row
  return textOf({ ...row, envelopeDigest, answers })
}

/** Inserts a row and returns its id. */
export async function insert(db: Db, coder: Coder, row: NewOutboxRow): Promise<number> {
  return (await insertAll(db, coder, [row]))[0] ?? 0
}

/** What this envelope of a receipt asks for, as a kept row says that tokenmill wrote; null if there is none. */
export async function findAnswers(
  db: Db,
  coder: Pick<Coder, 'receiptMacBy'>,
  receiptId: string,
  envelopeDigest: Buffer,
): Promise<Buffer | null> {
  const { rows } = await db.query<Row>({
    text: `select ${COLUMNS}
from tokenmill.outbox
where receipt_id = $1 and envelope_digest = $2 and answers is not null
order by outbox_id desc
limit 10`,
    values: [receiptId, envelopeDigest],
  })
  return rows.map(outboxOf<Row>).find(row => isProved(coder, row))?.answers ?? null
}

/**
 * SQL for a statement that writes receipts: inserts their outbox rows. `written` names the subquery to select from,
 * which must have the column `revision`; the others are expressions: columns of `written`, or parameters (`$1`).
 */
export function rowsOfReceipts(columns: {
  clientId: string
  replyTo: string
  receiptId: string
  envelope: string
  answers: string
  mac: string
  macVersion: string
  written: string
}): string {
  return `insert into tokenmill.outbox (
  day,
  client_id,
  reply_to,
  receipt_id,
  revision,
  envelope_digest,
  answers,
  mac,
  mac_version
)
select
  now()::date,
  ${columns.clientId},
  ${columns.replyTo},
  ${columns.receiptId},
  revision,
  ${columns.envelope},
  ${columns.answers},
  ${columns.mac},
  ${columns.macVersion}
from ${columns.written}
returning outbox_id as "outboxId", receipt_id as "receiptId", revision`
}

export async function markSent(db: Db, outboxIds: readonly number[]): Promise<void> {
  if (outboxIds.length === 0) return
  await db.query({
    name: 'outbox-sent',
    // The commit doesn't wait for the disk: rows whose state a crash of the database loses are published once more.
    text: `update tokenmill.outbox as o
set state = 'SENT'
from unnest($1::bigint[]) as v(id)
where o.outbox_id = v.id and (select set_config('synchronous_commit', 'off', true)) = 'off'`,
    values: [plains(outboxIds)],
  })
}

/** Takes rows out of what is to be published: tokenmill didn't write them, or their receipts, as they are. */
export async function markUnproved(db: Db, outboxIds: readonly number[]): Promise<void> {
  if (outboxIds.length === 0) return
  await db.query({
    text: `update tokenmill.outbox
set state = 'UNPROVED'
where outbox_id = any($1::bigint[])`,
    values: [plains(outboxIds)],
  })
}

/** Has rows of a receipt told that were taken out, if they are proved by now. Returns how many. */
export async function tellAgain(db: Db, receiptId: string): Promise<number> {
  const { count } = await db.query({
    text: `update tokenmill.outbox
set state = 'NEW'
where receipt_id = $1 and state = 'UNPROVED'`,
    values: [receiptId],
  })
  return count
}

/** Up to `limit` of the newest rows, first; as many random ones; and as many of those that were taken out. */
export async function sample(db: Db, limit: number): Promise<Announcement[]> {
  const { rows } = await db.query<Row & Pick<Announcement, 'state'>>({
    text: `with bounds as (
  select
    (select outbox_id from tokenmill.outbox order by outbox_id limit 1) as first,
    (select outbox_id from tokenmill.outbox order by outbox_id desc limit 1) as last
), newest as (
  select ${COLUMNS}, state
  from tokenmill.outbox
  order by outbox_id desc
  limit $1
), scattered as (
  select ${COLUMNS}, state
  from tokenmill.outbox
  where outbox_id = any(array(
    select first + floor(random() * (last - first + 1))::bigint
    from bounds
    cross join generate_series(1, $1)
  ))
), taken_out as (
  select ${COLUMNS}, state
  from tokenmill.outbox
  where state = 'UNPROVED'
  order by outbox_id desc
  limit $1
)
select *
from newest
union all
select *
from scattered
union all
select *
from taken_out`,
    values: [limit],
  })
  return [...new Map(rows.map(row => [row.outboxId, outboxOf(row)])).values()]
}

/** Stores the trace of a result that waits, so that its later publication joins that trace. */
export async function setTrace(db: Db, outboxId: number, traceparent: string): Promise<void> {
  await db.query({
    name: 'outbox-trace',
    // The commit doesn't wait for the disk: a crash of the database loses only a link between traces.
    text: `update tokenmill.outbox
set traceparent = $2
where outbox_id = $1 and (select set_config('synchronous_commit', 'off', true)) = 'off'`,
    values: [outboxId, traceparent],
  })
}

/** True for a result, false for an event. An event has no receipt: its row holds its own id as receipt id. */
export const IS_ANSWER = 'result_id is distinct from receipt_id'

/** The order of the index of unpublished rows, and the first such row of those with a condition. */
const IN_INDEX = 'order by client_id, reply_to, outbox_id'
const firstNew = (condition: string, place: number) => `(select client_id, reply_to, created_at, ${place} as place
  from tokenmill.outbox where state = 'NEW' and ${condition} ${IN_INDEX} limit 1)`

/** A results queue for which something waits. */
interface PendingQueue extends Pick<OutboxRow, 'clientId' | 'replyTo'> {
  oldest: number
}

/**
 * Queues with unpublished results or events, by the age of their first row. It reads one row of each queue, however many
 * there are: every process asks for them each second.
 */
export async function pendingQueues(db: Db): Promise<PendingQueue[]> {
  const { rows } = await db.query<PendingQueue>({
    name: 'outbox-queues',
    text: `with recursive queue as (
  ${firstNew('true', 0)}
  union all
  select next.*
  from queue as q
  cross join lateral (
    select *
    from (
    ${firstNew('client_id = q.client_id and reply_to > q.reply_to', 1)}
    union all ${firstNew('client_id = q.client_id and q.reply_to is not null and reply_to is null', 2)}
    union all ${firstNew('client_id > q.client_id', 3)}
  ) as found
    order by place
    limit 1
  ) as next
)
select client_id as "clientId", reply_to as "replyTo", created_at as oldest
from queue
order by created_at`,
  })
  return rows
}

/** Queues with unpublished results, oldest first. Events don't count, because no job asked for them. */
export async function pendingAnswers(db: Db): Promise<(PendingQueue & { rows: number })[]> {
  const { rows } = await db.query<PendingQueue & { rows: number }>({
    text: `select
  client_id as "clientId",
  reply_to as "replyTo",
  count(*) as rows,
  min(created_at) as oldest
from tokenmill.outbox
where state = 'NEW' and ${IS_ANSWER}
group by client_id, reply_to
order by oldest`,
  })
  return rows
}

/** Erases up to `limit` unpublished events from before `before` (ms): their results queue had no room. Returns how many. */
export async function eraseUntoldEvents(db: Db, before: number, limit: number): Promise<number> {
  const { count } = await db.query({
    text: `delete from tokenmill.outbox as o using (
  select outbox_id, day
  from tokenmill.outbox
  where state = 'NEW' and not (${IS_ANSWER}) and created_at < $1
  limit $2
) as v
where o.outbox_id = v.outbox_id and o.day = v.day`,
    values: [new Date(before), limit],
  })
  return count
}

/** Takes up to `limit` rows of one queue from before `before` (ms). Skips rows that another process holds. */
export async function take(
  db: Db,
  clientId: string,
  replyTo: string | null,
  before: number,
  limit: number,
): Promise<OutboxRow[]> {
  const { rows } = await db.query<Row>({
    text: `select ${COLUMNS}
from tokenmill.outbox
where state = 'NEW' and client_id = $1
  and ${replyTo === null ? 'reply_to is null and $2::text is null' : 'reply_to = $2'}
  and created_at < $3
${IN_INDEX}
limit $4
for update skip locked`,
    values: [clientId, replyTo, new Date(before), limit],
  })
  return rows.map(outboxOf<Row>)
}

/** Backpressure: from this many waiting results of a queue on, workers delay the chunks that are answered there (workers/answer/announce.ts). */
export const HELD_BACK_MIN = 10_000

/**
 * How many results wait to be published on one of this client's queues. Events don't count, because no job asked for
 * them.
 */
export async function pendingOf(db: Db, clientId: string, replyTo: string | null, most: number): Promise<number> {
  const { rows } = await db.query<{ rows: number }>({
    text: `select count(*) as rows
from (
  select
  from tokenmill.outbox
  where state = 'NEW' and client_id = $1 and reply_to is not distinct from $2
  and ${IS_ANSWER}
  limit $3
) as pending`,
    values: [clientId, replyTo, most],
  })
  return rows[0]?.rows ?? 0
}

/**
 * Marks published rows that were written since `since` (ms) to be published again, on the default queue or on one reply
 * queue: those among the next `page` rows of all clients after the row `after`. `next`: where to go on; undefined: there
 * are no more.
 */
export async function replay(
  db: Db,
  { clientId, replyTo, since }: { clientId: string; replyTo: string | null; since: number },
  { after, page }: { after: number; page: number },
): Promise<{ replayed: number; next: number | undefined }> {
  const { rows } = await db.query<{ replayed: number; rows: number; last: number | null }>({
    // No index covers published rows, so all are read; a row's day is that of its transaction, in some time zone.
    text: `with page as (
  select outbox_id, day, state = 'SENT' and client_id = $1 and reply_to is not distinct from $2 and created_at >= $3 as is_wanted
  from tokenmill.outbox
  where day >= $3::timestamptz::date - 1 and outbox_id > $4
  order by outbox_id
  limit $5
), marked as (
  update tokenmill.outbox as o
  set state = 'NEW'
  from page
  where o.outbox_id = page.outbox_id and o.day = page.day and page.is_wanted and o.state = 'SENT'
  returning o.outbox_id
)
select (select count(*) from marked) as replayed, count(*) as rows, max(outbox_id) as last
from page`,
    values: [clientId, replyTo, new Date(since), after, page],
  })
  const { replayed = 0, rows: read = 0, last = null } = rows[0] ?? {}
  return { replayed, next: read < page || last === null ? undefined : last }
}

/**
 * Counts up to `limit` unpublished results of a reply queue as published, because nobody reads that queue. They can be
 * published again as long as they are kept. Returns how many.
 */
export async function giveUp(db: Db, clientId: string, replyTo: string, limit: number): Promise<number> {
  const { count } = await db.query({
    text: `update tokenmill.outbox as o
set state = 'SENT'
from (
  select outbox_id, day
  from tokenmill.outbox
  where state = 'NEW' and client_id = $1 and reply_to = $2
  order by outbox_id
  limit $3
  for update skip locked
) as v
where o.outbox_id = v.outbox_id and o.day = v.day`,
    values: [clientId, replyTo, limit],
  })
  return count
}

export interface Announcement extends OutboxRow {
  /** NEW: the row waits to be published. SENT: the text was put on the results queue. UNPROVED: it is told to nobody. */
  state: 'NEW' | 'SENT' | 'UNPROVED'
}
