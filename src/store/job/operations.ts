// Operations that were accepted over HTTP and are answered later. Each keeps its signed envelope until it has an answer
// or its time is over. The receipt holds the answer; only an answer to an envelope without a receipt is stored here.
import type { Failure } from '../../job/problem.ts'
import { plains } from '../columns.ts'
import type { Db } from '../pool.ts'

export interface Operation {
  receiptId: string
  clientId: string
  entityId: string
  kind: string
  jobId: string
  requestDigest: Buffer
  /** The result id of a refusal of exactly this envelope, which may exist beside a receipt. */
  refusalId: string
  state: 'QUEUED' | 'ANSWERED' | 'REFUSED' | 'EXPIRED'
  /** The answer of a `REFUSED` operation. Its `revision` is 0 if a receipt exists, whose answer then outranks it. */
  failure: Failure | null
  revision: number
  /** ms since the epoch. */
  acceptedAt: number
  /** The latest time at which a worker may start the job. */
  expiresAt: number
  createdAt: number
  completedAt: number | null
}

const COLUMNS = `
  o.receipt_id as "receiptId",
  o.client_id as "clientId",
  o.entity_id as "entityId",
  o.kind,
  o.job_id as "jobId",
  o.request_digest as "requestDigest",
  o.refusal_id as "refusalId",
  o.state,
  o.failure,
  o.revision,
  o.accepted_at as "acceptedAt",
  o.expires_at as "expiresAt",
  o.created_at as "createdAt",
  o.completed_at as "completedAt"`

type NewOperation = Pick<
  Operation,
  'receiptId' | 'clientId' | 'entityId' | 'kind' | 'jobId' | 'requestDigest' | 'refusalId' | 'acceptedAt' | 'expiresAt'
> & { jws: string; dueAt: number }

/**
 * Stores an operation. True if the caller is to queue it: it is new, or the same request ended before without a
 * receipt. False if an operation with this id exists, which stays as it is.
 */
export async function accept(db: Db, operation: NewOperation): Promise<boolean> {
  const { count } = await db.query({
    name: 'operation-accept',
    text: `insert into tokenmill.operation as o (
  receipt_id,
  client_id,
  entity_id,
  kind,
  job_id,
  request_digest,
  refusal_id,
  jws,
  accepted_at,
  expires_at,
  due_at
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
  $9,
  $10,
  $11
)
on conflict (receipt_id) do update
set
  jws = excluded.jws,
  refusal_id = excluded.refusal_id,
  state = 'QUEUED',
  failure = null,
  revision = 0,
  accepted_at = excluded.accepted_at,
  expires_at = excluded.expires_at,
  due_at = excluded.due_at,
  created_at = now(),
  completed_at = null
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
  const { rows } = await db.query<Operation>({
    name: 'operation-find',
    text: `select ${COLUMNS}
from tokenmill.operation as o
where o.receipt_id = $1`,
    values: [receiptId],
  })
  return rows[0]
}

/**
 * Takes up to `limit` due operations and skips those that another process holds. Each is due again after as long as it
 * has waited so far, at least 5 s and at most `leaseMs`.
 */
export async function take(
  db: Db,
  now: number,
  leaseMs: number,
  limit: number,
): Promise<(Operation & { jws: string })[]> {
  const { rows } = await db.query<Operation & { jws: string }>({
    text: `with due as (
  select receipt_id
  from tokenmill.operation
  where state = 'QUEUED' and due_at <= $1
  order by due_at
  limit $3
  for update skip locked
)
update tokenmill.operation as o
set due_at = $1 + least(greatest($1 - o.accepted_at, interval '5 s'), $2 * interval '1 ms')
from due
where o.receipt_id = due.receipt_id
returning ${COLUMNS}, o.jws`,
    values: [new Date(now), leaseMs, limit],
  })
  return rows
}

/** How an operation was answered: by its receipt, or by a text that the outbox holds. */
interface Sign {
  receiptId: string
  /** Null if the receipt is the answer. */
  body: string | null
}

/**
 * For each operation the newest answer to its own envelope. Operations without an answer are left out: an answer to another
 * envelope under the same key isn't one, because that envelope's sender may still give it up.
 */
export async function findSigns(db: Db, receiptIds: readonly string[]): Promise<Sign[]> {
  if (receiptIds.length === 0) return []
  const { rows } = await db.query<Sign>({
    text: `select o.receipt_id as "receiptId", told.body
from unnest($1::uuid[]) as wanted(id)
cross join lateral (
  select receipt_id, sha256(convert_to(jws, 'UTF8')) as envelope
  from tokenmill.operation
  where receipt_id = wanted.id and state = 'QUEUED'
  limit 1
) as o
cross join lateral (
  select body
  from tokenmill.outbox
  where receipt_id = o.receipt_id and envelope_digest = o.envelope
  order by outbox_id desc
  limit 1
) as told`,
    values: [plains(receiptIds)],
  })
  return rows
}

/**
 * Whether somebody was told that the job with this receipt will be done: an operation is never given up. One that was
 * refused beside a receipt isn't answered from the receipt.
 */
export async function isPromised(db: Db, receiptId: string): Promise<boolean> {
  const { count } = await db.query({
    text: `select
from tokenmill.operation
where receipt_id = $1 and (state <> 'REFUSED' or revision > 0)
limit 1`,
    values: [receiptId],
  })
  return count === 1
}

/** Ends operations that have a receipt, and erases their envelopes. */
export async function answer(db: Db, receiptIds: readonly string[]): Promise<void> {
  if (receiptIds.length === 0) return
  await db.query({
    text: `update tokenmill.operation as o
set state = 'ANSWERED', jws = null
from unnest($1::uuid[]) as v(id)
where o.receipt_id = v.id and o.state = 'QUEUED'`,
    values: [plains(receiptIds)],
  })
}

export interface Refused {
  failure: Failure
  revision: number
  /** ms since the epoch. */
  completedAt: number
}

/** Ends an operation that was answered without a receipt. */
export async function refuse(db: Db, receiptId: string, answered: Refused): Promise<void> {
  await db.query({
    text: `update tokenmill.operation
set
  state = 'REFUSED',
  jws = null,
  failure = $2::jsonb,
  revision = $3,
  completed_at = $4
where receipt_id = $1 and state = 'QUEUED'`,
    values: [receiptId, JSON.stringify(answered.failure), answered.revision, new Date(answered.completedAt)],
  })
}

/** Ends those of `receiptIds` whose time was over before `before` (ms) and that have no answer. */
export async function expire(db: Db, receiptIds: readonly string[], before: number): Promise<void> {
  if (receiptIds.length === 0) return
  await db.query({
    text: `update tokenmill.operation as o
set state = 'EXPIRED', jws = null, completed_at = o.expires_at
from unnest($1::uuid[]) as v(id)
where o.receipt_id = v.id and o.state = 'QUEUED' and o.expires_at < $2`,
    values: [plains(receiptIds), new Date(before)],
  })
}

/** How many operations have no answer yet, and when the oldest was accepted. */
export async function measure(db: Db): Promise<{ rows: number; oldest: number | null }> {
  const { rows } = await db.query<{ rows: number; oldest: number | null }>({
    text: `select count(*) as rows, min(accepted_at) as oldest
from tokenmill.operation
where state = 'QUEUED'`,
  })
  return rows[0] ?? { rows: 0, oldest: null }
}

/**
 * Removes operations that have ended and are from before `before` (ms since the epoch). Up to `limit` at once; returns
 * how many.
 */
export async function removeOld(db: Db, before: number, limit: number): Promise<number> {
  const { count } = await db.query({
    text: `delete from tokenmill.operation
where receipt_id in (
  select receipt_id
  from tokenmill.operation
where created_at < $1 and state <> 'QUEUED'
  order by created_at
  limit $2
)`,
    values: [new Date(before), limit],
  })
  return count
}
