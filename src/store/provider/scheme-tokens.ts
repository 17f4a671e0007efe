// All writes to the table of scheme tokens. A row is a provisioning: it is inserted before the provider is asked, and
// kept until the provider has nothing left of it. Any job may retire a row (mark it to be deleted at the provider).
// Only the holder of the row's lease writes the provider's answers; a lease that isn't renewed ends, and then the row
// is due for others. stored-schemes.ts reads the rows.
import { plains, rowSet, texts } from '../columns.ts'
import type { Db } from '../pool.ts'
import * as schemeCards from './scheme-cards.ts'
import { endIntent } from './scheme-intents.ts'
import type { Leased, LeasedUpdate, NewScheme, Reference, StoredScheme } from './scheme-row.ts'
import { COLUMNS, leasedValues, NEW_COLUMNS, NEW_NAMES } from './scheme-row.ts'

/**
 * Inserts provisionings as PENDING and, unless they are untaken, as the current ones of their tokens, whose earlier ones
 * were displaced before. A third party's provisioning is left out if its card has got one meanwhile. Returns how many
 * were inserted.
 */
export async function insertAll(db: Db, schemes: readonly NewScheme[]): Promise<number> {
  const rows = schemes.some(({ link }) => link) ? await schemeCards.insertMissing(db, schemes) : schemes
  if (rows.length === 0) return 0
  const { shape, source, values } = rowSet(NEW_COLUMNS, rows)
  const { count } = await db.query({
    name: `scheme-insert-${shape}`,
    text: `insert into tokenmill.scheme_token (
  ${NEW_NAMES},
  state,
  version,
  updated_at
)
select
  ${NEW_NAMES},
  'PENDING',
  1,
  created_at
from ${source}`,
    values,
  })
  return count
}

/** Lets retired or ended provisionings of these tokens no longer be current, so that a new one can be. */
export async function displace(db: Db, tokenIds: readonly string[]): Promise<void> {
  if (tokenIds.length === 0) return
  await db.query({
    name: 'scheme-displace',
    text: `update tokenmill.scheme_token
set current = false
where token_id = any($1::uuid[]) and current
and (retired_at is not null or state in ('DELETED', 'VOID'))`,
    values: [plains(tokenIds)],
  })
}

// A third party is asked by our id alone, so the card of a retired provisioning isn't kept.
const FORGOTTEN = `cards = null, card = case when third_party then null else card end,
  card_version = case when third_party then null else card_version end`

/**
 * Retires all provisionings of these tokens that the provider may still have, except those that jobs had made for other
 * cards: such a job takes or retires its own. A leased row is due when its lease ends.
 */
export async function retireOf(db: Db, tokenIds: readonly string[], now: number): Promise<void> {
  if (tokenIds.length === 0) return
  await db.query({
    name: 'scheme-retire',
    text: `update tokenmill.scheme_token
set
  retired_at = $2,
  attempts = 0,
  version = version + 1,
  updated_at = $2,
  ${FORGOTTEN},
  due_at = case when lease is null then $2 else due_at end
where token_id = any($1::uuid[]) and (current or third_party) and retired_at is null and state not in ('DELETED', 'VOID')`,
    values: [plains(tokenIds), new Date(now)],
  })
}

// What a job had made, and no token's row has taken over. Not current: all of third parties, and what networks made for
// cards that their tokens don't have yet.
const UNTAKEN = `not current and taken_at is null and retired_at is null and state not in ('DELETED', 'VOID')`
const UNTAKEN_GOES = `retired_at = $2, due_at = coalesce(due_at, $2), attempts = 0, version = version + 1,
  updated_at = $2, ${FORGOTTEN}`

/** Retires what these jobs asked for and no token's row has taken over. */
export async function retireUntakenOf(db: Db, receiptIds: readonly string[], now: number): Promise<void> {
  if (receiptIds.length === 0) return
  await db.query({
    name: 'scheme-retire-untaken-of',
    text: `update tokenmill.scheme_token
  set ${UNTAKEN_GOES}
  where ${UNTAKEN} and provision_id in (
  select provision_id
  from tokenmill.scheme_intent
  where receipt_id = any($1::uuid[]) and action = 'PROVISION'
)`,
    values: [plains(receiptIds), new Date(now)],
  })
}

/** Retires what was asked for before `before` and no token's row has taken over; returns how many. */
export async function retireUntaken(db: Db, before: number, now: number, limit: number): Promise<number> {
  const { count } = await db.query({
    text: `update tokenmill.scheme_token
set ${UNTAKEN_GOES}
where provision_id in (
  select provision_id
  from tokenmill.scheme_token
  where ${UNTAKEN} and created_at < $1
  order by created_at
  limit $3
  for update skip locked
)`,
    values: [new Date(before), new Date(now), limit],
  })
  return count
}

/**
 * Retires those of these provisionings that haven't ended, and makes tokens no longer show them. With `intentId`: only
 * provisionings whose last change came from that intent. Returns how many.
 */
export async function withdrawAll(
  db: Db,
  provisionIds: readonly string[],
  now: number,
  intentId: string | null = null,
): Promise<number> {
  if (provisionIds.length === 0) return 0
  const { count } = await db.query({
    text: `update tokenmill.scheme_token
set
  current = false,
  version = version + 1,
  updated_at = $2,
  ${FORGOTTEN},
  retired_at = case when state in ('DELETED', 'VOID') then retired_at else coalesce(retired_at, $2) end,
  due_at = case when state in ('DELETED', 'VOID') or lease is not null then due_at else $2 end
where provision_id = any($1::uuid[]) and ($3::uuid is null or last_intent = $3)`,
    values: [plains(provisionIds), new Date(now), intentId],
  })
  return count
}

/** `withdrawAll` for one provisioning; false if another change came after that intent. */
export async function withdraw(db: Db, provisionId: string, now: number, intentId?: string): Promise<boolean> {
  return (await withdrawAll(db, [provisionId], now, intentId)) === 1
}

/** Records that a later job relies on these provisionings: their last change can't be compensated any more. */
export async function buildOn(db: Db, provisionIds: readonly string[]): Promise<void> {
  if (provisionIds.length === 0) return
  await db.query({
    name: 'scheme-build-on',
    text: `update tokenmill.scheme_token
set last_intent = null
where provision_id = any($1::uuid[]) and last_intent is not null`,
    values: [plains(provisionIds)],
  })
}

/** Marks third parties' tokens as taken up by token rows of this transaction. Returns how many were still free. */
export async function takeUp(db: Db, provisionIds: readonly string[], now: number): Promise<number> {
  if (provisionIds.length === 0) return 0
  const { count } = await db.query({
    name: 'third-party-take-up',
    text: `with held as (
  select provision_id
  from tokenmill.scheme_token
  where provision_id = any($1::uuid[]) and third_party and state = 'ACTIVE' and retired_at is null and taken_at is null
  order by provision_id
  for update
)
update tokenmill.scheme_token as t
set taken_at = $2
from held
where t.provision_id = held.provision_id`,
    values: [plains(provisionIds), new Date(now)],
  })
  return count
}

/**
 * Makes provisionings of networks the current ones of their tokens, which have got the cards now, and whose earlier ones
 * were displaced before. From now on they go with the card: the job's intent doesn't stand for them any more. Returns
 * how many were still free.
 */
export async function takeOver(db: Db, provisionIds: readonly string[], now: number): Promise<number> {
  if (provisionIds.length === 0) return 0
  const { count } = await db.query({
    name: 'scheme-take-over',
    text: `update tokenmill.scheme_token
set
  current = true,
  taken_at = $2,
  last_intent = null,
  version = version + 1,
  updated_at = $2
where provision_id = any($1::uuid[]) and not third_party and not current and taken_at is null and retired_at is null
and state not in ('PENDING', 'VOID')`,
    values: [plains(provisionIds), new Date(now)],
  })
  return count
}

/** Takes the lease of rows that this transaction has locked. `until`: when the lease ends. */
export async function leaseAll(db: Db, rows: readonly Leased[], lease: string, until: number): Promise<void> {
  if (rows.length === 0) return
  await db.query({
    name: 'scheme-lease',
    text: `update tokenmill.scheme_token as t
set
  lease = $4,
  due_at = $5,
  asked = v.asked,
  last_intent = v.intent,
  attempts = attempts + 1
from unnest($1::uuid[], $2::text[], $3::uuid[]) as v(id, asked, intent)
where t.provision_id = v.id`,
    values: [
      plains(rows.map(row => row.provisionId)),
      texts(rows.map(row => row.asked)),
      plains(rows.map(row => row.intentId)),
      lease,
      new Date(until),
    ],
  })
}

// A background provisioning counts as asked for as soon as the loop takes its lease.
const TO_BE_ASKED = `asked = case when state = 'PENDING' and background and retired_at is null then 'PROVISION' else asked end`

/** Takes the lease of these provisionings, due or not, unless another process holds it. */
export async function take(
  db: Db,
  provisionIds: readonly string[],
  lease: string,
  now: number,
  until: number,
): Promise<StoredScheme[]> {
  const { rows } = await db.query<StoredScheme>({
    name: 'scheme-take',
    text: `update tokenmill.scheme_token
set
  lease = $2,
  due_at = $4,
  attempts = attempts + 1,
  ${TO_BE_ASKED}
where provision_id = any($1::uuid[]) and (lease is null or due_at <= $3) and state not in ('DELETED', 'VOID')
returning ${COLUMNS}`,
    values: [plains(provisionIds), lease, new Date(now), new Date(until)],
  })
  return rows
}

/** Takes the lease of up to `limit` due rows, including rows whose lease has ended. */
export async function takeDue(
  db: Db,
  lease: string,
  now: number,
  until: number,
  limit: number,
): Promise<StoredScheme[]> {
  const { rows } = await db.query<StoredScheme>({
    name: 'scheme-take-due',
    text: `update tokenmill.scheme_token
set
  lease = $1,
  due_at = $3,
  attempts = attempts + 1,
  ${TO_BE_ASKED}
where provision_id in (
  select provision_id
  from tokenmill.scheme_token
  where due_at <= $2
  order by due_at
  limit $4
  for update skip locked
)
returning ${COLUMNS}`,
    values: [lease, new Date(now), new Date(until), limit],
  })
  return rows
}

/** Takes the lease of up to `limit` rows that were last compared with their provider before `before`. */
export async function takeUnchecked(
  db: Db,
  lease: string,
  { until, before, limit }: { until: number; before: number; limit: number },
): Promise<StoredScheme[]> {
  const { rows } = await db.query<StoredScheme>({
    text: `update tokenmill.scheme_token
set lease = $1, due_at = $3
where provision_id in (
  select provision_id
  from tokenmill.scheme_token
  where retired_at is null and state in ('INACTIVE', 'ACTIVE', 'SUSPENDED') and due_at is null
  and coalesce(checked_at, created_at) < $2
  order by coalesce(checked_at, created_at)
  limit $4
  for update skip locked
)
returning ${COLUMNS}`,
    values: [lease, new Date(before), new Date(until), limit],
  })
  return rows
}

export async function renew(db: Db, lease: string, until: number): Promise<void> {
  await db.query({
    name: 'scheme-renew',
    text: `update tokenmill.scheme_token
set due_at = $2
where lease = $1`,
    values: [lease, new Date(until)],
  })
}

/**
 * Corrects a row that was given up as VOID although the provider made the token, which must now be deleted there. Does
 * nothing if the row isn't VOID, or if another row has this reference.
 */
export async function reclaim(
  db: Db,
  { provisionId, reference, referenceSealed, referenceVersion }: Pick<StoredScheme, 'provisionId'> & Reference,
  now: number,
): Promise<void> {
  await db.query({
    text: `update tokenmill.scheme_token as t
set
  state = 'ACTIVE',
  reference = $2,
  reference_sealed = $4,
  reference_version = $5,
  retired_at = coalesce(retired_at, $3),
  due_at = $3,
  current = false,
  attempts = 0,
  refusal = null,
  version = version + 1,
  updated_at = $3
where provision_id = $1 and state = 'VOID' and not exists (
  select
  from tokenmill.scheme_token as other
  where other.provider = t.provider and other.reference = $2
)`,
    values: [provisionId, reference, new Date(now), referenceSealed, referenceVersion],
  })
}

/** Gives one row's lease back; the row is due at `dueAt`. */
export async function giveBack(db: Db, provisionId: string, lease: string, dueAt: number): Promise<void> {
  await db.query({
    name: 'scheme-give-back',
    text: `update tokenmill.scheme_token
set lease = null, due_at = $3
where provision_id = $1 and lease = $2`,
    values: [provisionId, lease, new Date(dueAt)],
  })
}

// A retired third-party provisioning never gets a card back into its row.
const IS_TO_GO = 't.third_party and t.retired_at is not null'
const IS_OVER = `$4 in ('DELETED', 'VOID')`

/**
 * Writes the provider's answer, ends the intent, and gives the lease back. Returns the new row; undefined if the lease
 * was lost, or if another provisioning has this reference.
 */
export async function writeLeased(
  db: Db,
  update: LeasedUpdate,
  lease: string,
  now: number,
  intent?: { intentId: string; state: 'INTENDED' | 'DONE' | 'REFUSED'; refusal: string | null },
): Promise<StoredScheme | undefined> {
  const { rows } = await db.query<StoredScheme>({
    name: 'scheme-write-leased',
    text: `with told as (
  update tokenmill.scheme_token as t
  set
    state = $4,
    reference = $5,
    suspended_by = $6::text[],
    sealed = $7,
    seal_version = $8,
    last_four = $9,
    expiry_month = $10,
    expiry_year = $11,
    par = $12,
    card = case when ${IS_TO_GO} then null else $13::bytea end,
    card_version = case when ${IS_TO_GO} then null else $14::smallint end,
    refusal = $15,
    asked = $16,
    due_at = case when t.retired_at is null or ${IS_OVER} then $17::timestamptz else coalesce($17::timestamptz, $3::timestamptz) end,
    attempts = $18,
    checked_at = $19,
    reference_sealed = $20,
    reference_version = $21,
    current = t.current and $4 <> 'VOID',
    lease = null,
    version = t.version + 1,
    updated_at = $3,
    cards = case when ${IS_OVER} then null else t.cards end
  where t.provision_id = $1 and t.lease = $2 and not exists (
    select
    from tokenmill.scheme_token as other
    where other.provider = t.provider and other.reference = $5 and other.provision_id <> $1
  )
  returning *
), settled as (
  ${endIntent({ intentId: '$22', state: '$23', refusal: '$24', now: '$3', told: 'told' })}
)
select ${COLUMNS}
from told`,
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
  return rows[0]
}

/** Erases up to `limit` ended provisionings that no token shows and that were last changed before `before`. Returns how many. */
export async function eraseOld(db: Db, before: number, limit: number): Promise<number> {
  const isOld = `state in ('DELETED', 'VOID') and not current and updated_at < $1`
  const page = `select ctid
from tokenmill.scheme_token
where ${isOld}
order by updated_at
limit $2`
  const text = `delete from tokenmill.scheme_token
where ${isOld} and ctid = any(array(${page}))`
  return (await db.query({ text, values: [new Date(before), limit] })).count
}

/** The tokens with these values of third parties; several may have the same. */
export async function findThirdPartyTokens(db: Db, values: readonly string[]): Promise<string[]> {
  if (values.length === 0) return []
  const { rows } = await db.query<{ tokenId: string }>({
    name: 'scheme-tokens-of-third-parties',
    text: `select token_id as "tokenId"
from tokenmill.scheme_token
where third_party and state = 'ACTIVE' and reference = any($1::text[])`,
    values: [texts(values)],
  })
  return rows.map(({ tokenId }) => tokenId)
}
