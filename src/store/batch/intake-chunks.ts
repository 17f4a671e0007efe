// Chunks of batches that came over HTTP: envelope and block are stored before the 202, and erased when the chunk is
// answered. Each step that ends chunks is one statement that also adds them to the batch's counts, so that nothing is
// counted twice.
import type { Outcome } from '../../job/outcome.ts'
import type { Db } from '../pool.ts'
import { COUNT_SETTLED } from './intake.ts'

export interface NewChunk {
  intakeNo: number
  chunk: number
  receiptId: string
  jobId: string
  /** The result id of a refusal of exactly this envelope, which may exist beside a receipt. */
  refusalId: string
  jws: string
  block: string
  /** JSON: `[line, reference?]` of each record. */
  lines: string
  records: number
}

export async function insert(db: Db, chunk: NewChunk): Promise<void> {
  await db.query({
    name: 'intake-chunk-insert',
    text: `insert into tokenmill.intake_chunk (
  intake_no,
  chunk,
  receipt_id,
  job_id,
  refusal_id,
  jws,
  block,
  lines,
  records
)
values (
  $1,
  $2,
  $3,
  $4,
  $5,
  $6,
  $7,
  $8,
  $9
)`,
    values: [
      chunk.intakeNo,
      chunk.chunk,
      chunk.receiptId,
      chunk.jobId,
      chunk.refusalId,
      chunk.jws,
      chunk.block,
      chunk.lines,
      chunk.records,
    ],
  })
}

/** A chunk as the feeder puts it on the queue. */
export interface Envelope {
  intakeNo: number
  chunk: number
  jobId: string
  jws: string
  block: string
}

const ENVELOPE = `
  c.intake_no as "intakeNo",
  c.chunk,
  c.job_id as "jobId",
  c.jws,
  c.block`

export interface InFlight {
  /** How many chunks may be sent and unanswered: of one batch, of all batches of one client, of all batches. */
  ofOneMax: number
  ofClientMax: number
  max: number
}

// Only one feeder in the installation works at a time, because the limits are for the whole installation.
const ALONE = `select pg_try_advisory_xact_lock(hashtextextended('tokenmill feeder', 0)) as alone`

// Workers put the chunks of a paused batch back on the queue, so such chunks don't count towards the limits.
const PAUSED = `exists (select from tokenmill.batch as b where b.client_id = i.client_id and b.batch_id = i.batch_id
  and b.paused_at is not null and not i.dry_run)`

/**
 * Takes up to `limit` waiting chunks that may be sent now, low chunk numbers first, so that a small batch needn't wait
 * for a large one. A batch of updates or actions has only one chunk in flight: otherwise two changes of one token could
 * be done in the wrong order. Chunks that wait for a network which is away stay in flight, so no client may take all
 * places.
 */
export async function take(
  db: Db,
  inFlight: InFlight,
  times: { now: number; dueAt: number },
  limit: number,
): Promise<Envelope[]> {
  const { rows: lock } = await db.query<{ alone: boolean }>({ text: ALONE })
  if (!lock[0]?.alone) return []
  const { rows } = await db.query<Envelope>({
    text: `with room as (
  select i.intake_no, i.client_id, case i.record_kind when 'token-create' then $1::int else 1 end - (select count(*) from tokenmill.intake_chunk as s where s.intake_no = i.intake_no and s.state = 'SENT') as free
  from tokenmill.intake as i
  where i.state <> 'RECEIVING' and i.finished_at is null and i.expires_at > $3 and not ${PAUSED}
), sent as (
  select i.client_id, count(*) as n
  from tokenmill.intake_chunk as s
  join tokenmill.intake as i using (intake_no)
  where s.state = 'SENT' and not ${PAUSED}
  group by i.client_id
), waiting as (
  select
    w.intake_no,
    w.chunk,
    room.client_id,
    row_number() over (partition by room.client_id order by w.chunk, w.intake_no) as place
  from room
  cross join lateral (
    select intake_no, chunk
    from tokenmill.intake_chunk
    where intake_no = room.intake_no and state = 'WAITING'
    order by chunk
    limit greatest(room.free, 0)
  ) as w
), next as (
  select intake_no, chunk
  from waiting
  left join sent using (client_id)
  where place <= $6 - coalesce(sent.n, 0)
  order by chunk, intake_no
  limit least($5, greatest($2 - (select coalesce(sum(n), 0) from sent), 0))
)
update tokenmill.intake_chunk as c
set state = 'SENT', sent_at = now(), due_at = $4
from next
where c.intake_no = next.intake_no and c.chunk = next.chunk and c.state = 'WAITING'
returning ${ENVELOPE}`,
    values: [
      ...[inFlight.ofOneMax, inFlight.max, new Date(times.now), new Date(times.dueAt), limit],
      inFlight.ofClientMax,
    ],
  })
  return rows
}

/**
 * Takes up to `limit` sent chunks that are unanswered and due; sets their next time to `dueAt` (ms since the epoch).
 */
export async function takeAgain(db: Db, times: { now: number; dueAt: number }, limit: number): Promise<Envelope[]> {
  const { rows } = await db.query<Envelope>({
    text: `with due as (
  select intake_no, chunk
  from tokenmill.intake_chunk
  where state = 'SENT' and due_at <= $1
  order by due_at
  limit $3
  for update skip locked
)
update tokenmill.intake_chunk as c
set due_at = $2
from due
where c.intake_no = due.intake_no and c.chunk = due.chunk
returning ${ENVELOPE}`,
    values: [new Date(times.now), new Date(times.dueAt), limit],
  })
  return rows
}

/** A chunk could not be queued: sets its next time to `dueAt` (ms since the epoch). */
export async function postpone(db: Db, { intakeNo, chunk }: Envelope, dueAt: number): Promise<void> {
  await db.query({
    text: `update tokenmill.intake_chunk
set due_at = $3
where intake_no = $1 and chunk = $2 and state = 'SENT'`,
    values: [intakeNo, chunk, new Date(dueAt)],
  })
}

// The newest answer since the chunk was sent. An answer to another envelope with the same jti doesn't count.
const TOLD = `cross join lateral (select body from tokenmill.outbox where receipt_id = c.receipt_id and created_at >= c.sent_at
  and (body is null or revision > 0 or result_id = c.refusal_id) order by outbox_id desc limit 1) as told`

/** Ends sent chunks that have a receipt. Returns how many batches changed. */
export async function settleByReceipt(db: Db): Promise<number> {
  const { count } = await db.query({
    text: `with answered as (
  select c.intake_no, c.chunk, r.counts
  from tokenmill.intake_chunk as c ${TOLD}
  cross join lateral (select counts from tokenmill.receipt where receipt_id = c.receipt_id and counts is not null limit 1) as r
  where c.state = 'SENT' and told.body is null
), settled as (
  update tokenmill.intake_chunk as c
  set
    state = 'DONE',
    jws = null,
    block = null,
    lines = null
  from answered as a
  where c.intake_no = a.intake_no and c.chunk = a.chunk and c.state = 'SENT'
  returning c.intake_no, a.counts
)
${COUNT_SETTLED}`,
  })
  return count
}

interface Told extends Pick<NewChunk, 'intakeNo' | 'chunk' | 'records'> {
  body: string
}

/** Sent chunks whose answer isn't in a receipt. */
export async function findTold(db: Db, limit: number): Promise<Told[]> {
  const { rows } = await db.query<Told>({
    text: `select
  c.intake_no as "intakeNo",
  c.chunk,
  c.records,
  told.body
from tokenmill.intake_chunk as c ${TOLD}
where c.state = 'SENT' and told.body is not null
limit $1`,
    values: [limit],
  })
  return rows
}

export interface Settled {
  state: 'DONE' | 'REFUSED'
  counts: Partial<Record<Outcome, number>>
  code: number
  /** Why the whole chunk was refused. */
  reason: string | null
}

/** Ends one sent chunk by its answer. */
export async function settleTold(db: Db, intakeNo: number, chunk: number, settled: Settled): Promise<void> {
  await db.query({
    text: `with settled as (
  update tokenmill.intake_chunk
  set
    state = $3,
    code = $4,
    reason = $5,
    jws = null,
    block = null
  where intake_no = $1 and chunk = $2 and state = 'SENT'
  returning intake_no, $6::jsonb as counts
)
${COUNT_SETTLED}`,
    values: [intakeNo, chunk, settled.state, settled.code, settled.reason, JSON.stringify(settled.counts)],
  })
}

/** Ends a batch's chunks that will not be started: those that wait, and with `EXPIRED` also those that were sent. */
export async function end(db: Db, intakeNo: number, state: 'CANCELLED' | 'EXPIRED'): Promise<void> {
  const outcome: Outcome = state === 'CANCELLED' ? 'CANCELLED' : 'REJECTED'
  await db.query({
    text: `with settled as (
  update tokenmill.intake_chunk
  set
    state = $2,
    code = 400,
    reason = $3,
    jws = null,
    block = null
  where intake_no = $1 and (state = 'WAITING' or ($2 = 'EXPIRED' and state = 'SENT'))
  returning intake_no, jsonb_build_object('${outcome}', records) as counts
)
${COUNT_SETTLED}`,
    values: [intakeNo, state, state === 'CANCELLED' ? 'cancelled' : 'envelope_expired'],
  })
}

/** Measures the chunks without an answer. `oldest`: when the oldest of their batches was accepted. */
export async function measure(db: Db): Promise<{ rows: number; oldest: number | null }> {
  const { rows } = await db.query<{ rows: number; oldest: number | null }>({
    text: `select sum(open.rows)::bigint as rows, min(i.accepted_at) as oldest
from (
  select intake_no, count(*) as rows
  from tokenmill.intake_chunk
  where state = 'WAITING'
  group by intake_no
  union all
  select intake_no, count(*)
  from tokenmill.intake_chunk
  where state = 'SENT'
  group by intake_no
) as open
join tokenmill.intake as i using (intake_no)`,
  })
  return { rows: rows[0]?.rows ?? 0, oldest: rows[0]?.oldest ?? null }
}

export async function isAnySent(db: Db): Promise<boolean> {
  const { count } = await db.query({
    text: `select
from tokenmill.intake_chunk
where state = 'SENT'
limit 1`,
  })
  return count === 1
}
