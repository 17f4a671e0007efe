// Single jobs as commands and the console explain them. A chunk's receipt is seen by people who see its batch. A job without a receipt
// has no entity that somebody verified: people for some entities see it if it was accepted over HTTP for one of them, or if
// every entity of its client is among theirs. It only reads; names.ts finds jobs by their names.
import { plains } from '../columns.ts'
import type { Operation } from '../job/operations.ts'
import type { Announcement } from '../job/outbox.ts'
import type { Receipt } from '../job/receipts.ts'
import type { Db } from '../pool.ts'
import type { SchemeIntent } from '../provider/scheme-intents.ts'
import { entitiesOf, type Sight } from '../sight.ts'

type SeenReceipt = Omit<
  Receipt,
  'requestDigest' | 'digestVersion' | 'envelopeDigest' | 'reasons' | 'outcomes' | 'failedRecords'
>

const RECEIPT = `r.receipt_id as "receiptId", r.entity_id as "entityId", r.client_id as "clientId", r.iss, r.kind, r.jti,
r.reply_to as "replyTo", r.reference, r.status, r.code, r.outcome, r.refusal, r.token_id as "tokenId", r.batch_no as "batchNo", r.chunk,
r.counts, r.revision, r.reversal, r.attempt, r.accepted_at as "acceptedAt", r.completed_at as "completedAt"`

// Not `exists`, which PostgreSQL may answer by reading all batches of the entities.
/** Whether the receipt `r` is seen by people for the entities $1; null: all. */
const SEEN_RECEIPT = `($1::uuid[] is null or case when r.batch_no is null then r.entity_id
  else (select b.entity_id from tokenmill.batch as b where b.batch_no = r.batch_no) end = any($1))`

const HAS_SEEN_RECEIPT = `exists (select from tokenmill.receipt_key as k
  join tokenmill.receipt as r on r.receipt_id = k.receipt_id and r.day = k.day where k.receipt_id = $2 and ${SEEN_RECEIPT})`
const HAS_SEEN_OPERATION = `exists (
  select from tokenmill.operation as p where p.receipt_id = $2 and p.entity_id = any($1))`
/** Whether the client's jobs without a receipt are seen. */
const isWhole = (client: string) => `(${client}.entities && $1 and ${client}.entities <@ $1)`

/** Receipts by id; missing ones and those of others are left out. */
export async function listReceipts(sight: Sight, db: Db, receiptIds: readonly string[]): Promise<SeenReceipt[]> {
  if (receiptIds.length === 0) return []
  const { rows } = await db.query<SeenReceipt>({
    name: 'seen-receipts',
    text: `select ${RECEIPT}
from unnest($2::uuid[]) as wanted(id)
cross join lateral (select day from tokenmill.receipt_key where receipt_id = wanted.id and day is not null limit 1) as k
cross join lateral (
  select
    receipt_id,
    entity_id,
    client_id,
    iss,
    kind,
    jti,
    reply_to,
    reference,
    status,
    code,
    outcome,
    refusal,
    token_id,
    batch_no,
    chunk,
    counts,
    revision,
    reversal,
    attempt,
    accepted_at,
    completed_at
  from tokenmill.receipt
  where receipt_id = wanted.id and day = k.day
  limit 1
) as r
where ${SEEN_RECEIPT}`,
    values: [entitiesOf(sight), plains(receiptIds)],
  })
  return rows
}

/** Those of the ids that have a row in the outbox. Whether the row may be shown, the caller knows by its client. */
export async function findTold(sight: Sight, db: Db, receiptIds: readonly string[]): Promise<string[]> {
  const { rows } = await db.query<{ id: string }>({
    name: 'seen-told',
    text: `select wanted.id
from unnest($2::uuid[]) as wanted(id)
cross join lateral (select client_id from tokenmill.outbox where receipt_id = wanted.id limit 1) as told
where $1::uuid[] is null or exists (select from tokenmill.client as c where c.client_id = told.client_id and ${isWhole('c')})`,
    values: [entitiesOf(sight), plains(receiptIds)],
  })
  return rows.map(({ id }) => id)
}

type SeenAnnouncement = Pick<Announcement, 'outboxId' | 'clientId' | 'replyTo' | 'resultId' | 'revision'> &
  Pick<Announcement, 'createdAt' | 'state'> & {
    /** Of an answer that is stored as a text; null for others, and for an answer without such a member. */
    jti: string | null
    code: number | null
    details: unknown
  }

/** A job has one for each revision and repeat. */
const ANSWERS_MAX = 50

/** The answers to one job, oldest first. `resultId` is null if it follows from receipt and revision. */
export async function listAnswers(
  sight: Sight,
  db: Db,
  receiptId: string,
): Promise<(Omit<SeenAnnouncement, 'resultId'> & { resultId: string | null })[]> {
  const { rows } = await db.query<Omit<SeenAnnouncement, 'resultId'> & { resultId: string | null }>({
    name: 'seen-answers',
    text: `select
  o.outbox_id as "outboxId",
  o.client_id as "clientId",
  o.reply_to as "replyTo",
  o.result_id as "resultId",
  o.revision,
  o.created_at as "createdAt",
  o.state,
  t.jti,
  t.code,
  t.details
from tokenmill.outbox as o
left join tokenmill.told_reason as t on t.receipt_id = o.receipt_id and t.outbox_id = o.outbox_id
where o.receipt_id = $2 and o.result_id is distinct from o.receipt_id and ($1::uuid[] is null or ${HAS_SEEN_RECEIPT} or ${HAS_SEEN_OPERATION}
  or (exists (select from tokenmill.client as c where c.client_id = o.client_id and ${isWhole('c')})
    and not exists (select from tokenmill.receipt_key as k where k.receipt_id = $2 and k.day is not null)))
order by o.outbox_id
limit ${ANSWERS_MAX}`,
    values: [entitiesOf(sight), receiptId],
  })
  return rows
}

type SeenOperation = Pick<Operation, 'receiptId' | 'clientId' | 'kind' | 'jobId' | 'state' | 'acceptedAt'> &
  Pick<Operation, 'expiresAt' | 'completedAt'>

export async function findOperation(sight: Sight, db: Db, receiptId: string): Promise<SeenOperation | undefined> {
  const { rows } = await db.query<SeenOperation>({
    name: 'seen-operation',
    text: `select
  receipt_id as "receiptId",
  client_id as "clientId",
  kind,
  job_id as "jobId",
  state,
  accepted_at as "acceptedAt",
  expires_at as "expiresAt",
  completed_at as "completedAt"
from tokenmill.operation
where receipt_id = $2 and ($1::uuid[] is null or entity_id = any($1))`,
    values: [entitiesOf(sight), receiptId],
  })
  return rows[0]
}

type SeenCall = Pick<SchemeIntent, 'action' | 'state' | 'refusal' | 'reversal'> & {
  /** ms since the epoch. */
  createdAt: number
  updatedAt: number
}

/** A chunk may have one for each of its records. */
const CALLS_MAX = 100

/** What one job asked of providers, oldest first. */
export async function listCalls(sight: Sight, db: Db, receiptId: string): Promise<SeenCall[]> {
  const { rows } = await db.query<SeenCall>({
    name: 'seen-calls',
    text: `select
  action,
  state,
  refusal,
  reversal,
  created_at as "createdAt",
  updated_at as "updatedAt"
from tokenmill.scheme_intent
where receipt_id = $2 and ($1::uuid[] is null or ${HAS_SEEN_RECEIPT} or ${HAS_SEEN_OPERATION})
order by created_at
limit ${CALLS_MAX}`,
    values: [entitiesOf(sight), receiptId],
  })
  return rows
}

export interface SeenClient {
  clientId: string
  name: string
  /** Whether its jobs without a receipt are seen. */
  isWhole: boolean
}

/** The clients with an entity that the person sees. */
export async function listClients(sight: Sight, db: Db): Promise<SeenClient[]> {
  const { rows } = await db.query<SeenClient>({
    name: 'seen-clients',
    text: `select client_id as "clientId", name, coalesce(entities <@ $1::uuid[], true) as "isWhole"
from tokenmill.client
where $1::uuid[] is null or entities && $1
order by client_id`,
    values: [entitiesOf(sight)],
  })
  return rows
}
