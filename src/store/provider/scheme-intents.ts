// Intents: what jobs ask of providers, recorded before the call, and whether it must be compensated. scheme-tokens.ts
// holds the provisionings, and also ends an intent when it writes the provider's answer.
import type { SchemeCall } from '../../token/scheme.ts'
import { plains, texts } from '../columns.ts'
import type { Db } from '../pool.ts'

export interface SchemeIntent {
  intentId: string
  receiptId: string
  tokenId: string
  provisionId: string
  /** `DELETE`: recorded now, called later. */
  action: SchemeCall | 'DELETE'
  state: 'INTENDED' | 'DONE' | 'REFUSED' | 'ABANDONED'
  refusal: string | null
  reversal: 'REQUIRED' | 'COMPLETED' | null
}

const COLUMNS = `
  intent_id as "intentId",
  receipt_id as "receiptId",
  token_id as "tokenId",
  provision_id as "provisionId",
  action,
  state,
  refusal,
  reversal`

export async function findByIds(db: Db, intentIds: readonly string[]): Promise<SchemeIntent[]> {
  const { rows } = await db.query<SchemeIntent>({
    name: 'scheme-intents-by-id',
    text: `select ${COLUMNS}
from tokenmill.scheme_intent
where intent_id = any($1::uuid[])`,
    values: [plains(intentIds)],
  })
  return rows
}

/** The intents of the jobs with these receipts. */
export async function findByReceipts(db: Db, receiptIds: readonly string[]): Promise<SchemeIntent[]> {
  const { rows } = await db.query<SchemeIntent>({
    name: 'scheme-intents-by-receipt',
    text: `select ${COLUMNS}
from tokenmill.scheme_intent
where receipt_id = any($1::uuid[])
order by intent_id`,
    values: [plains(receiptIds)],
  })
  return rows
}

export function findByReceipt(db: Db, receiptId: string): Promise<SchemeIntent[]> {
  return findByReceipts(db, [receiptId])
}

export type NewIntent = Pick<SchemeIntent, 'intentId' | 'receiptId' | 'tokenId' | 'provisionId' | 'action'>

/** Inserts intents as INTENDED. An intent that exists gets this provisioning and action, and is INTENDED again. */
export async function intendAll(db: Db, intents: readonly NewIntent[], now: number): Promise<void> {
  if (intents.length === 0) return
  await db.query({
    name: 'scheme-intend',
    text: `insert into tokenmill.scheme_intent (
  intent_id,
  receipt_id,
  token_id,
  provision_id,
  action,
  state,
  created_at,
  updated_at
)
select
  v.intent_id,
  v.receipt_id,
  v.token_id,
  v.provision_id,
  v.action,
  'INTENDED',
  $6,
  $6
from unnest(
  $1::uuid[],
  $2::uuid[],
  $3::uuid[],
  $4::uuid[],
  $5::text[]
)
  as v(
    intent_id,
    receipt_id,
    token_id,
    provision_id,
    action
  )
on conflict (intent_id) do update
set
  provision_id = excluded.provision_id,
  action = excluded.action,
  state = 'INTENDED',
  updated_at = excluded.updated_at`,
    values: [
      plains(intents.map(one => one.intentId)),
      plains(intents.map(one => one.receiptId)),
      plains(intents.map(one => one.tokenId)),
      plains(intents.map(one => one.provisionId)),
      texts(intents.map(one => one.action)),
      new Date(now),
    ],
  })
}

/** Marks intents as done: their calls had their effect. */
export async function confirmAll(db: Db, intentIds: readonly string[], now: number): Promise<void> {
  if (intentIds.length === 0) return
  await db.query({
    name: 'scheme-confirm',
    text: `update tokenmill.scheme_intent
set state = 'DONE', updated_at = $2
where intent_id = any($1::uuid[]) and state = 'INTENDED'`,
    values: [plains(intentIds), new Date(now)],
  })
}

/** Marks intents as abandoned: their calls had no effect and never will. */
export async function abandon(db: Db, intentIds: readonly string[], now: number): Promise<void> {
  if (intentIds.length === 0) return
  await db.query({
    text: `update tokenmill.scheme_intent
set state = 'ABANDONED', updated_at = $2
where intent_id = any($1::uuid[]) and state = 'INTENDED'`,
    values: [plains(intentIds), new Date(now)],
  })
}

/** Abandons all open intents of these receipts. Their jobs have ended, so nobody else would end them. */
export async function abandonOf(db: Db, receiptIds: readonly string[], now: number): Promise<void> {
  if (receiptIds.length === 0) return
  await db.query({
    name: 'scheme-abandon-of',
    text: `update tokenmill.scheme_intent
set state = 'ABANDONED', updated_at = $2
where receipt_id = any($1::uuid[]) and state = 'INTENDED'`,
    values: [plains(receiptIds), new Date(now)],
  })
}

/** Marks intents as owing compensation: the effect of their calls must be undone. */
export async function owe(db: Db, intentIds: readonly string[], now: number): Promise<void> {
  if (intentIds.length === 0) return
  await db.query({
    text: `update tokenmill.scheme_intent
set reversal = 'REQUIRED', updated_at = $2
where intent_id = any($1::uuid[]) and reversal is null and state in ('INTENDED', 'DONE')`,
    values: [plains(intentIds), new Date(now)],
  })
}

export async function complete(db: Db, intentId: string, now: number): Promise<void> {
  await db.query({
    text: `update tokenmill.scheme_intent
set reversal = 'COMPLETED', updated_at = $2,
  state = case when state = 'INTENDED' then 'ABANDONED' else state end
where intent_id = $1 and reversal = 'REQUIRED'`,
    values: [intentId, new Date(now)],
  })
}

/**
 * Receipts with compensation owed that nobody worked on since `before`. Taking one counts as work: `now` is written to
 * it.
 */
export async function takeOwed(db: Db, before: number, now: number, limit: number): Promise<string[]> {
  const { rows } = await db.query<Pick<SchemeIntent, 'receiptId'>>({
    text: `update tokenmill.scheme_intent
set updated_at = $2
where intent_id in (
  select intent_id
  from tokenmill.scheme_intent
  where reversal = 'REQUIRED' and updated_at < $1
  order by updated_at
  limit $3
  for update skip locked
)
returning receipt_id as "receiptId"`,
    values: [new Date(before), new Date(now), limit],
  })
  return [...new Set(rows.map(({ receiptId }) => receiptId))]
}

export async function countOwed(db: Db): Promise<{ rows: number; oldest: number | null }> {
  const { rows } = await db.query<{ rows: number; oldest: number | null }>({
    text: `select count(*) as rows, min(created_at) as oldest
from tokenmill.scheme_intent
where reversal = 'REQUIRED'`,
  })
  return rows[0] ?? { rows: 0, oldest: null }
}

/** Erases up to `limit` ended intents that were last changed before `before`. Returns how many. */
export async function eraseOld(db: Db, before: number, limit: number): Promise<number> {
  const isOld = `updated_at < $1 and state <> 'INTENDED' and reversal is distinct from 'REQUIRED'`
  const { count } = await db.query({
    text: `delete from tokenmill.scheme_intent
  where ${isOld} and ctid = any(array(
  select ctid
  from tokenmill.scheme_intent
  where ${isOld}
  order by updated_at
  limit $2
))`,
    values: [new Date(before), limit],
  })
  return count
}

/**
 * SQL for a statement that writes a provider's answer: ends the answered intent, if the answer was written. `told`
 * names the subquery that wrote it; the others are parameters (`$1`).
 */
export function endIntent(by: { intentId: string; state: string; refusal: string; now: string; told: string }): string {
  return `update tokenmill.scheme_intent as i
  set state = ${by.state}, refusal = ${by.refusal}, updated_at = ${by.now}
  from ${by.told}
  where i.intent_id = ${by.intentId} and i.state = 'INTENDED'`
}
