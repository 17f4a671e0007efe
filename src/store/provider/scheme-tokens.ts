// Every write to the table of scheme tokens. A row is a provisioning: it is made before the network is asked and kept
// until nothing is left of it there. Any job may say that a row is to go. What the network says is written by the holder
// of the row's lease alone; a lease that isn't renewed ends, and then the row is due for others. Reading is
// stored-schemes.ts.
import { plains, rowSet, texts } from '../columns.ts'
import type { Db } from '../pool.ts'
import { endIntent } from './scheme-intents.ts'
import type { Leased, LeasedUpdate, NewScheme, Row, StoredScheme } from './scheme-row.ts'
import { COLUMNS, leasedValues, NEW_COLUMNS, NEW_NAMES, schemeOf } from './scheme-row.ts'

/**
 * Makes these, PENDING, the current ones of their tokens; what was current before must have been displaced. A third
 * party's is left out where its card has got one meanwhile: answers how many were made.
 */
export async function insertAll(db: Db, schemes: readonly NewScheme[]): Promise<number> {
  if (schemes.length === 0) return 0
  const { shape, source, values } = rowSet(NEW_COLUMNS, schemes)
  const { count } = await db.query({
    name: `scheme-insert-${shape}`,
    text: `insert into tokenmill.scheme_token (${NEW_NAMES}, current, state, version, updated_at)
select ${NEW_NAMES}, not third_party, 'PENDING', 1, created_at from ${source}
on conflict (fingerprint) where fingerprint is not null do nothing`,
    values,
  })
  return count
}

/** Their tokens are to show others: those of which nothing is to be left. */
export async function displace(db: Db, tokenIds: readonly string[]): Promise<void> {
  if (tokenIds.length === 0) return
  await db.query({
    name: 'scheme-displace',
    text: `update tokenmill.scheme_token set current = false where token_id = any($1::uuid[]) and current
and (retired_at is not null or state in ('DELETED', 'VOID'))`,
    values: [plains(tokenIds)],
  })
}

// A third party is asked by our id alone: nothing of a card that is to go stays.
const FORGOTTEN = `fingerprint = null, card = case when third_party then null else card end,
  card_version = case when third_party then null else card_version end`

/**
 * From now on each is to go from the network: all of a token's that may yet be there. Nothing that was said is taken
 * back: one whose lease runs is looked at when that ends.
 */
export async function retireOf(db: Db, tokenIds: readonly string[], now: number): Promise<void> {
  if (tokenIds.length === 0) return
  await db.query({
    name: 'scheme-retire',
    text: `update tokenmill.scheme_token set retired_at = $2, attempts = 0, version = version + 1, updated_at = $2, ${FORGOTTEN},
  due_at = case when lease is null then $2 else due_at end
where token_id = any($1::uuid[]) and retired_at is null and state not in ('DELETED', 'VOID')`,
    values: [plains(tokenIds), new Date(now)],
  })
}

const UNTAKEN_GOES = `retired_at = $2, due_at = coalesce(due_at, $2), attempts = 0, version = version + 1,
  updated_at = $2, ${FORGOTTEN}`

/** What this job asked a third party for and no token has taken up is to go. */
export async function retireUntakenOf(db: Db, receiptId: string, now: number): Promise<void> {
  await db.query({
    name: 'third-party-retire-untaken-of',
    text: `update tokenmill.scheme_token set ${UNTAKEN_GOES}
where third_party and taken_at is null and retired_at is null and state in ('PENDING', 'ACTIVE')
and provision_id in (select provision_id from tokenmill.scheme_intent where receipt_id = $1 and action = 'PROVISION')`,
    values: [receiptId, new Date(now)],
  })
}

/** Third parties' that no token has taken up since `before` are to go: their jobs were given up. Returns how many. */
export async function retireUntaken(db: Db, before: number, now: number, limit: number): Promise<number> {
  const { count } = await db.query({
    text: `update tokenmill.scheme_token set ${UNTAKEN_GOES}
where provision_id in (
  select provision_id from tokenmill.scheme_token
  where third_party and taken_at is null and retired_at is null and state in ('PENDING', 'ACTIVE') and created_at < $1
  order by created_at limit $3 for update skip locked
)`,
    values: [new Date(before), new Date(now), limit],
  })
  return count
}

/**
 * As `retireOf`, of provisionings that are to leave no trace: their tokens show them no more. `intentId`: only while nobody
 * has built on what that intended. Returns how many.
 */
export async function withdrawAll(
  db: Db,
  provisionIds: readonly string[],
  now: number,
  intentId: string | null = null,
): Promise<number> {
  if (provisionIds.length === 0) return 0
  const { count } = await db.query({
    text: `update tokenmill.scheme_token set current = false, version = version + 1, updated_at = $2, ${FORGOTTEN},
  retired_at = case when state in ('DELETED', 'VOID') then retired_at else coalesce(retired_at, $2) end,
  due_at = case when state in ('DELETED', 'VOID') or lease is not null then due_at else $2 end
where provision_id = any($1::uuid[]) and ($3::uuid is null or last_intent = $3)`,
    values: [plains(provisionIds), new Date(now), intentId],
  })
  return count
}

/** As `withdrawAll`, of one; false where somebody has built on it. */
export async function withdraw(db: Db, provisionId: string, now: number, intentId?: string): Promise<boolean> {
  return (await withdrawAll(db, [provisionId], now, intentId)) === 1
}

/** Somebody relies on them as they are: whoever made them so can't take it back any more. */
export async function buildOn(db: Db, provisionIds: readonly string[]): Promise<void> {
  if (provisionIds.length === 0) return
  await db.query({
    name: 'scheme-build-on',
    text: 'update tokenmill.scheme_token set last_intent = null where provision_id = any($1::uuid[]) and last_intent is not null',
    values: [plains(provisionIds)],
  })
}

/** Says that tokens, which are inserted in the same transaction, take these up. Returns how many nobody else has. */
export async function takeUp(db: Db, provisionIds: readonly string[], now: number): Promise<number> {
  if (provisionIds.length === 0) return 0
  const { count } = await db.query({
    name: 'third-party-take-up',
    text: `with held as (
  select provision_id from tokenmill.scheme_token
  where provision_id = any($1::uuid[]) and third_party and state = 'ACTIVE' and retired_at is null and taken_at is null
  order by provision_id for update
) update tokenmill.scheme_token as t set taken_at = $2 from held where t.provision_id = held.provision_id`,
    values: [plains(provisionIds), new Date(now)],
  })
  return count
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

/**
 * Writes what the network said and gives the lease back; with it an intent is settled. Answers the row as it is then;
 * undefined where the lease was lost, or the reference is another provisioning's.
 */
export async function writeLeased(
  db: Db,
  update: LeasedUpdate,
  lease: string,
  now: number,
  intent?: { intentId: string; state: 'INTENDED' | 'DONE' | 'REFUSED'; refusal: string | null },
): Promise<StoredScheme | undefined> {
  const { rows } = await db.query<Row>({
    name: 'scheme-write-leased',
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
  ${endIntent({ intentId: '$20', state: '$21', refusal: '$22', now: '$3', told: 'told' })}
)
select ${COLUMNS} from told`,
    values: [
      update.provisionId,
      lease,
      new Date(now),
      ...leasedValues(update),
      intent?.intentId ?? null,
      intent?.state ?? 'DONE',
      intent?.refusal ?? null,
    ],
  })
  const row = rows[0]
  return row && schemeOf(row)
}

/** What nothing is left of, and no token shows. Returns how many. */
export async function eraseOld(db: Db, before: number): Promise<number> {
  const { count } = await db.query({
    text: `delete from tokenmill.scheme_token where state in ('DELETED', 'VOID') and not current and updated_at < $1`,
    values: [new Date(before)],
  })
  return count
}
