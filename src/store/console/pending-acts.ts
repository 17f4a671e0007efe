// Acts that wait for their person, and what became of them. A row decides nothing: a worker checks the request and its proof
// again, and the row of the audit is the record.
import type { Db } from '../pool.ts'

/** What became of an act. `done: null`: not known; it may have been done. */
export type Verdict =
  | { done: true; auditId: string | null }
  | { done: false; reason: string; text: string }
  | { done: null }

export interface PendingAct {
  nonce: string
  /** Null while a person enrols. */
  sessionHash: Buffer | null
  /** The batch that it is about. */
  batchNo: number | null
  /** The request without its proof. */
  request: Record<string, unknown>
  /** ms since the epoch. */
  expiresAt: number
}

export interface SentAct extends PendingAct {
  /** Null: not sent yet. */
  sentAt: number | null
  /** Null: no worker answered yet. */
  verdict: Verdict | null
  /** The number of its audit row; null: not done, or not numbered yet. */
  auditNo: number | null
}

/** How long the verdict of an act is kept, as a PostgreSQL interval. */
const KEPT = '1 day'
const COLUMNS = `nonce, session_hash as "sessionHash", batch_no as "batchNo", request, expires_at as "expiresAt", sent_at as "sentAt", verdict`

export async function insert(db: Db, { nonce, sessionHash, batchNo, request, expiresAt }: PendingAct): Promise<void> {
  await db.query({
    text: `insert into tokenmill.pending_act (
  nonce,
  session_hash,
  batch_no,
  request,
  expires_at
)
values (
  $1,
  $2,
  $3,
  $4,
  $5
)`,
    values: [nonce, sessionHash, batchNo, JSON.stringify(request), new Date(expiresAt)],
  })
}

/** Takes the act for sending: once, in time, and only in the session (or enrolment: null) that began it. */
export async function take(db: Db, nonce: string, sessionHash: Buffer | null): Promise<PendingAct | undefined> {
  const { rows } = await db.query<SentAct>({
    text: `update tokenmill.pending_act
set sent_at = now()
where nonce = $1 and session_hash is not distinct from $2 and sent_at is null and expires_at > now()
returning ${COLUMNS}`,
    values: [nonce, sessionHash],
  })
  return rows[0]
}

/** Adds the new passkey to a `passkey.add` that waits for its touch: once, and only in the session that began it. */
export async function addPasskey(
  db: Db,
  nonce: string,
  sessionHash: Buffer,
  made: Record<string, string>,
): Promise<Pick<PendingAct, 'request'> | undefined> {
  const { rows } = await db.query<Pick<PendingAct, 'request'>>({
    text: `update tokenmill.pending_act
set request = jsonb_set(request, '{parameters}', $3::jsonb)
where nonce = $1 and session_hash = $2 and sent_at is null and expires_at > now()
  and request->>'act' = 'passkey.add' and request->'parameters' = '{}'::jsonb
returning request`,
    values: [nonce, sessionHash, JSON.stringify(made)],
  })
  return rows[0]
}

export async function setVerdict(db: Db, nonce: string, verdict: Verdict): Promise<void> {
  await db.query({
    text: `update tokenmill.pending_act
set verdict = $2
where nonce = $1 and sent_at is not null`,
    values: [nonce, JSON.stringify(verdict)],
  })
}

/** An act that this person sent. */
export async function findSent(db: Db, nonce: string, personId: string): Promise<SentAct | undefined> {
  const { rows } = await db.query<SentAct>({
    text: `select ${COLUMNS}, (select seq from tokenmill.audit where audit_id = (verdict->>'auditId')::bigint) as "auditNo"
from tokenmill.pending_act
where nonce = $1 and request->>'person_id' = $2 and sent_at is not null`,
    values: [nonce, personId],
  })
  return rows[0]
}

/** Copies of failed jobs of one act that ended alike. */
export interface EndedCopies {
  /** `done`, or why not; null: workers are still doing it. */
  outcome: string | null
  copies: number
}

/** How far workers are with an act on failed jobs. The nonce is known to who sent it. */
export async function listEnds(db: Db, nonce: string): Promise<EndedCopies[]> {
  const { rows } = await db.query<EndedCopies>({
    text: `select outcome, count(*) as copies
from tokenmill.failed_act
where nonce = $1
group by outcome
order by 2 desc, 1`,
    values: [nonce],
  })
  return rows
}

/** An enrolment that was sent: its nonce is known only to who sent it. */
export async function findSentEnrolment(db: Db, nonce: string): Promise<SentAct | undefined> {
  const { rows } = await db.query<SentAct>({
    text: `select ${COLUMNS}, null as "auditNo"
from tokenmill.pending_act
where nonce = $1 and session_hash is null and sent_at is not null`,
    values: [nonce],
  })
  return rows[0]
}

/** Removes acts that were not sent in time, and verdicts that are a day old. */
export async function removeOver(db: Db): Promise<void> {
  await db.query({
    text: `delete from tokenmill.pending_act
where expires_at < now() - interval '${KEPT}' or (sent_at is null and expires_at < now())`,
  })
}
