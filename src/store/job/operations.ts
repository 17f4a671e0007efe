// Operations that were accepted over HTTP and are answered later: each keeps its signed envelope until the answer
// exists or its time is over. The answer is in the receipt; only that of an envelope without a receipt is here.
import type { Kind } from '../../job/catalogue.ts'
import type { Problem } from '../../job/problem.ts'
import { plains } from '../columns.ts'
import type { Db } from '../pool.ts'

export interface Operation {
  receiptId: string
  clientId: string
  entityId: string
  kind: Kind
  jobId: string
  requestDigest: Buffer
  /** The id that a refusal of this very envelope has beside a receipt. */
  refusalId: string
  state: 'QUEUED' | 'ANSWERED' | 'REFUSED' | 'EXPIRED'
  /** Of `REFUSED`, with `revision`: 0 stands beside a receipt and outranks nothing. */
  error: Problem | null
  revision: number
  /** ms since the epoch. */
  acceptedAt: number
  /** Until when a worker may start it. */
  expiresAt: number
  createdAt: number
  completedAt: number | null
}

interface Row {
  receipt_id: string
  client_id: string
  entity_id: string
  kind: Kind
  job_id: string
  request_digest: Buffer
  refusal_id: string
  state: Operation['state']
  error: Problem | null
  revision: number
  accepted_at: number
  expires_at: number
  created_at: number
  completed_at: number | null
}

const NAMES = [
  ...['receipt_id', 'client_id', 'entity_id', 'kind', 'job_id', 'request_digest', 'refusal_id', 'state', 'error'],
  ...['revision', 'accepted_at', 'expires_at', 'created_at', 'completed_at'],
]
const COLUMNS = NAMES.map(name => `o.${name}`).join(', ')

function operationOf(row: Row): Operation {
  return {
    receiptId: row.receipt_id,
    clientId: row.client_id,
    entityId: row.entity_id,
    kind: row.kind,
    jobId: row.job_id,
    requestDigest: row.request_digest,
    refusalId: row.refusal_id,
    state: row.state,
    error: row.error,
    revision: row.revision,
    acceptedAt: row.accepted_at,
    expiresAt: row.expires_at,
    createdAt: row.created_at,
    completedAt: row.completed_at,
  }
}

type NewOperation = Pick<
  Operation,
  'receiptId' | 'clientId' | 'entityId' | 'kind' | 'jobId' | 'requestDigest' | 'refusalId' | 'acceptedAt' | 'expiresAt'
> & { jws: string; dueAt: number }

/**
 * True if this call queues the operation: it is new, or the same request once ended without a receipt. False: an
 * operation with this id exists and stays as it is.
 */
export async function accept(db: Db, operation: NewOperation): Promise<boolean> {
  const { count } = await db.query({
    name: 'operation-accept',
    text: `insert into tokenmill.operation as o (receipt_id, client_id, entity_id, kind, job_id, request_digest, refusal_id,
  jws, accepted_at, expires_at, due_at)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
on conflict (receipt_id) do update set jws = excluded.jws, refusal_id = excluded.refusal_id, state = 'QUEUED',
  code = null, error = null, revision = 0, accepted_at = excluded.accepted_at, expires_at = excluded.expires_at,
  due_at = excluded.due_at, created_at = now(), completed_at = null
where o.state in ('REFUSED', 'EXPIRED') and o.request_digest = excluded.request_digest`,
    values: [
      operation.receiptId,
      operation.clientId,
      operation.entityId,
      operation.kind,
      operation.jobId,
      operation.requestDigest,
      operation.refusalId,
      operation.jws,
      new Date(operation.acceptedAt),
      new Date(operation.expiresAt),
      new Date(operation.dueAt),
    ],
  })
  return count === 1
}

export async function find(db: Db, receiptId: string): Promise<Operation | undefined> {
  const { rows } = await db.query<Row>({
    name: 'operation-find',
    text: `select ${COLUMNS} from tokenmill.operation as o where o.receipt_id = $1`,
    values: [receiptId],
  })
  const row = rows[0]
  return row && operationOf(row)
}

/**
 * Takes up to `limit` due operations, skipping those that another process has just taken. Each is due again after as
 * long as it has waited so far, at least 5 s and at most `leaseMs`.
 */
export async function take(
  db: Db,
  now: number,
  leaseMs: number,
  limit: number,
): Promise<(Operation & { jws: string })[]> {
  const { rows } = await db.query<Row & { jws: string }>({
    text: `with due as (
  select receipt_id from tokenmill.operation where state = 'QUEUED' and due_at <= $1 order by due_at limit $3 for update skip locked
)
update tokenmill.operation as o set due_at = $1 + least(greatest($1 - o.accepted_at, interval '5 s'), $2 * interval '1 ms')
from due where o.receipt_id = due.receipt_id
returning ${COLUMNS}, o.jws`,
    values: [new Date(now), leaseMs, limit],
  })
  return rows.map(row => ({ ...operationOf(row), jws: row.jws }))
}

/** How a queued operation was answered: by its receipt, or by a text beside or without one. */
interface Sign {
  receiptId: string
  /** Absent where the receipt is the answer. */
  body: string | undefined
}

/** The newest answer to each, of those published since it was queued. Operations without an answer are left out. */
export async function findSigns(db: Db, receiptIds: readonly string[]): Promise<Sign[]> {
  if (receiptIds.length === 0) return []
  const { rows } = await db.query<{ receipt_id: string; body: string | null }>({
    text: `select o.receipt_id, told.body from unnest($1::uuid[]) as wanted(id)
cross join lateral (select receipt_id, refusal_id, created_at from tokenmill.operation
  where receipt_id = wanted.id and state = 'QUEUED' limit 1) as o
cross join lateral (select body from tokenmill.outbox where receipt_id = o.receipt_id and created_at >= o.created_at
  and (body is null or revision > 0 or result_id = o.refusal_id) order by outbox_id desc limit 1) as told`,
    values: [plains(receiptIds)],
  })
  return rows.map(row => ({ receiptId: row.receipt_id, body: row.body ?? undefined }))
}

/** Its receipt is there: the envelope is erased. */
export async function answer(db: Db, receiptIds: readonly string[]): Promise<void> {
  if (receiptIds.length === 0) return
  await db.query({
    text: `update tokenmill.operation as o set state = 'ANSWERED', jws = null from unnest($1::uuid[]) as v(id)
where o.receipt_id = v.id and o.state = 'QUEUED'`,
    values: [plains(receiptIds)],
  })
}

export interface Refused {
  error: Problem
  revision: number
  /** ms since the epoch. */
  completedAt: number
}

/** Answered without a receipt. */
export async function refuse(db: Db, receiptId: string, answered: Refused): Promise<void> {
  await db.query({
    text: `update tokenmill.operation set state = 'REFUSED', jws = null, code = $2, error = $3::jsonb, revision = $4, completed_at = $5
where receipt_id = $1 and state = 'QUEUED'`,
    values: [
      receiptId,
      answered.error.code,
      JSON.stringify(answered.error),
      answered.revision,
      new Date(answered.completedAt),
    ],
  })
}

/** Those of `receiptIds` whose time was over before `before` (ms), without an answer. */
export async function expire(db: Db, receiptIds: readonly string[], before: number): Promise<void> {
  if (receiptIds.length === 0) return
  await db.query({
    text: `update tokenmill.operation as o set state = 'EXPIRED', jws = null, completed_at = o.expires_at
from unnest($1::uuid[]) as v(id) where o.receipt_id = v.id and o.state = 'QUEUED' and o.expires_at < $2`,
    values: [plains(receiptIds), new Date(before)],
  })
}

/** The number of operations that have no answer yet. */
export async function measure(db: Db): Promise<{ rows: number; oldest: number | null }> {
  const { rows } = await db.query<{ rows: number; oldest: number | null }>({
    text: `select count(*) as rows, min(accepted_at) as oldest from tokenmill.operation where state = 'QUEUED'`,
  })
  return rows[0] ?? { rows: 0, oldest: null }
}

/** Removes operations whose receipts are gone. Up to `limit` at once; returns how many. */
export async function removeOld(db: Db, before: number, limit: number): Promise<number> {
  const { count } = await db.query({
    text: `delete from tokenmill.operation where receipt_id in (select receipt_id from tokenmill.operation
where created_at < $1 and state <> 'QUEUED' order by created_at limit $2)`,
    values: [new Date(before), limit],
  })
  return count
}
