// Scheme tokens while their network is asked about them: whoever holds a row's lease alone writes what the network said.
// A lease that isn't renewed ends, and the row is due for others; nobody is asked whether its holder still lives.
import type { SchemeCall } from '../../token/scheme.ts'
import { plains, texts } from '../columns.ts'
import type { Db } from '../pool.ts'
import { COLUMNS, type Row, type StoredScheme, schemeOf } from './scheme-row.ts'

export interface Leased {
  provisionId: string
  asked: SchemeCall
  intentId: string
}

/** Takes the lease of rows that this transaction holds. `until`: when it ends. */
export async function leaseAll(db: Db, rows: readonly Leased[], lease: string, until: number): Promise<void> {
  if (rows.length === 0) return
  await db.query({
    name: 'scheme-lease',
    text: `update tokenmill.scheme_token as t set lease = $4, due_at = $5, asked = v.asked, last_intent = v.intent,
  attempts = attempts + 1
from unnest($1::uuid[], $2::text[], $3::uuid[]) as v(id, asked, intent) where t.provision_id = v.id`,
    values: [
      plains(rows.map(row => row.provisionId)),
      texts(rows.map(row => row.asked)),
      plains(rows.map(row => row.intentId)),
      lease,
      new Date(until),
    ],
  })
}

// What the loop provisions may be asked for from the moment that it takes it.
const TO_BE_ASKED = `asked = case when state = 'PENDING' and background and retired_at is null then 'PROVISION' else asked end`

/** Takes the lease of these, whatever is due of them, unless somebody has it. */
export async function take(
  db: Db,
  provisionIds: readonly string[],
  lease: string,
  now: number,
  until: number,
): Promise<StoredScheme[]> {
  const { rows } = await db.query<Row>({
    name: 'scheme-take',
    text: `update tokenmill.scheme_token set lease = $2, due_at = $4, attempts = attempts + 1, ${TO_BE_ASKED}
where provision_id = any($1::uuid[]) and (lease is null or due_at <= $3) and state not in ('DELETED', 'VOID') returning ${COLUMNS}`,
    values: [plains(provisionIds), lease, new Date(now), new Date(until)],
  })
  return rows.map(schemeOf)
}

/** Takes the lease of up to `limit` that are due, also of those whose lease has ended. */
export async function takeDue(
  db: Db,
  lease: string,
  now: number,
  until: number,
  limit: number,
): Promise<StoredScheme[]> {
  const { rows } = await db.query<Row>({
    name: 'scheme-take-due',
    text: `update tokenmill.scheme_token set lease = $1, due_at = $3, attempts = attempts + 1, ${TO_BE_ASKED}
where provision_id in (
  select provision_id from tokenmill.scheme_token where due_at <= $2 order by due_at limit $4 for update skip locked
) returning ${COLUMNS}`,
    values: [lease, new Date(now), new Date(until), limit],
  })
  return rows.map(schemeOf)
}

/** Takes the lease of up to `limit` that were last held against their network before `before`. */
export async function takeUnchecked(
  db: Db,
  lease: string,
  { until, before, limit }: { until: number; before: number; limit: number },
): Promise<StoredScheme[]> {
  const { rows } = await db.query<Row>({
    text: `update tokenmill.scheme_token set lease = $1, due_at = $3
where provision_id in (
  select provision_id from tokenmill.scheme_token
  where retired_at is null and state in ('INACTIVE', 'ACTIVE', 'SUSPENDED') and due_at is null
  and coalesce(checked_at, created_at) < $2 order by coalesce(checked_at, created_at) limit $4 for update skip locked
) returning ${COLUMNS}`,
    values: [lease, new Date(before), new Date(until), limit],
  })
  return rows.map(schemeOf)
}

export async function renew(db: Db, lease: string, until: number): Promise<void> {
  await db.query({
    name: 'scheme-renew',
    text: 'update tokenmill.scheme_token set due_at = $2 where lease = $1',
    values: [lease, new Date(until)],
  })
}

/**
 * The network has made what was written off meanwhile, by whoever had the lease by then: it is to go from there. Nothing
 * changes where somebody still looks for it.
 */
export async function reclaim(
  db: Db,
  { provisionId, reference }: Pick<StoredScheme, 'provisionId' | 'reference'>,
  now: number,
): Promise<void> {
  await db.query({
    text: `update tokenmill.scheme_token as t set state = 'ACTIVE', reference = $2, retired_at = coalesce(retired_at, $3), due_at = $3,
  current = false, attempts = 0, refusal = null, version = version + 1, updated_at = $3
where provision_id = $1 and state = 'VOID' and not exists (
  select from tokenmill.scheme_token as other where other.provider = t.provider and other.reference = $2)`,
    values: [provisionId, reference, new Date(now)],
  })
}

/** Gives the lease of one row back: it is due at `dueAt`. */
export async function giveBack(db: Db, provisionId: string, lease: string, dueAt: number): Promise<void> {
  await db.query({
    name: 'scheme-give-back',
    text: 'update tokenmill.scheme_token set lease = null, due_at = $3 where provision_id = $1 and lease = $2',
    values: [provisionId, lease, new Date(dueAt)],
  })
}

// Of a third party's that is to go no card is kept, whatever was known of it before.
const IS_TO_GO = 't.third_party and t.retired_at is not null'

/** What may be written by whoever holds the lease. `dueAt`: when it is to be looked at again. */
export type Told = Pick<
  StoredScheme,
  | 'provisionId'
  | 'state'
  | 'reference'
  | 'suspendedBy'
  | 'sealed'
  | 'sealVersion'
  | 'lastFour'
  | 'expiryMonth'
  | 'expiryYear'
  | 'par'
  | 'card'
  | 'cardVersion'
  | 'refusal'
  | 'asked'
  | 'dueAt'
  | 'attempts'
  | 'checkedAt'
>

/**
 * Writes what the network said and gives the lease back; with it an intent is settled. Answers the row as it is then;
 * undefined where the lease was lost, or the reference is another provisioning's.
 */
export async function tell(
  db: Db,
  told: Told,
  lease: string,
  now: number,
  intent?: { intentId: string; state: 'INTENDED' | 'DONE' | 'REFUSED'; refusal: string | null },
): Promise<StoredScheme | undefined> {
  const { rows } = await db.query<Row>({
    name: 'scheme-tell',
    text: `with told as (
  update tokenmill.scheme_token as t set state = $4, reference = $5, suspended_by = $6::text[], sealed = $7, seal_version = $8,
    last_four = $9, expiry_month = $10, expiry_year = $11, par = $12,
    card = case when ${IS_TO_GO} then null else $13::bytea end, card_version = case when ${IS_TO_GO} then null else $14::smallint end, refusal = $15, asked = $16,
    due_at = case when t.retired_at is null or $4 in ('DELETED', 'VOID') then $17::timestamptz
      else coalesce($17::timestamptz, $3::timestamptz) end,
    attempts = $18, checked_at = $19, current = t.current and $4 <> 'VOID', lease = null, version = t.version + 1, updated_at = $3,
    fingerprint = case when $4 in ('DELETED', 'VOID') then null else t.fingerprint end
  where t.provision_id = $1 and t.lease = $2 and not exists (
    select from tokenmill.scheme_token as other
    where other.provider = t.provider and other.reference = $5 and other.provision_id <> $1
  ) returning *
), settled as (
  update tokenmill.scheme_intent as i set state = $21, refusal = $22, updated_at = $3 from told
  where i.intent_id = $20 and i.state = 'INTENDED'
)
select ${COLUMNS} from told`,
    values: [
      told.provisionId,
      lease,
      new Date(now),
      told.state,
      told.reference,
      texts(told.suspendedBy),
      told.sealed,
      told.sealVersion,
      told.lastFour,
      told.expiryMonth,
      told.expiryYear,
      told.par,
      told.card,
      told.cardVersion,
      told.refusal,
      told.asked,
      told.dueAt === null ? null : new Date(told.dueAt),
      told.attempts,
      told.checkedAt === null ? null : new Date(told.checkedAt),
      intent?.intentId ?? null,
      intent?.state ?? 'DONE',
      intent?.refusal ?? null,
    ],
  })
  const row = rows[0]
  return row && schemeOf(row)
}
