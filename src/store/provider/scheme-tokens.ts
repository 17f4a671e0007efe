// Scheme tokens: one row a provisioning, made before the network is asked and kept until nothing is left of it there.
// That a row is to go may be said at any time, by anybody; what the network says is written by scheme-leases.ts.
import { type Column, plains, rowSet, texts } from '../columns.ts'
import type { Db } from '../pool.ts'
import { COLUMNS, type Row, type StoredScheme, schemeOf } from './scheme-row.ts'

export type { StoredScheme } from './scheme-row.ts'

/** The current ones of these tokens, held until the transaction ends. */
export async function holdCurrent(db: Db, tokenIds: readonly string[]): Promise<StoredScheme[]> {
  const { rows } = await db.query<Row>({
    name: 'scheme-hold-current',
    text: `select ${COLUMNS} from tokenmill.scheme_token where token_id = any($1::uuid[]) and current
order by provision_id for update`,
    values: [plains(tokenIds)],
  })
  return rows.map(schemeOf)
}

/** The current ones of these tokens. */
export async function findCurrent(db: Db, tokenIds: readonly string[]): Promise<StoredScheme[]> {
  const { rows } = await db.query<Row>({
    name: 'scheme-find-current',
    text: `select ${COLUMNS} from tokenmill.scheme_token where token_id = any($1::uuid[]) and current`,
    values: [plains(tokenIds)],
  })
  return rows.map(schemeOf)
}

export async function find(db: Db, provisionId: string): Promise<StoredScheme | undefined> {
  const { rows } = await db.query<Row>({
    name: 'scheme-find',
    text: `select ${COLUMNS} from tokenmill.scheme_token where provision_id = $1`,
    values: [provisionId],
  })
  const row = rows[0]
  return row && schemeOf(row)
}

/** Those that these references of one network belong to. */
export async function findByReferences(
  db: Db,
  provider: string,
  references: readonly string[],
): Promise<StoredScheme[]> {
  const { rows } = await db.query<Row>({
    name: 'scheme-by-reference',
    text: `select ${COLUMNS} from tokenmill.scheme_token where provider = $1 and reference = any($2::text[])`,
    values: [provider, texts(references)],
  })
  return rows.map(schemeOf)
}

/** How many provisionings each of these tokens has had. */
export async function countOf(db: Db, tokenIds: readonly string[]): Promise<Map<string, number>> {
  const { rows } = await db.query<{ token_id: string; rows: number }>({
    name: 'scheme-count',
    text: 'select token_id, count(*) as rows from tokenmill.scheme_token where token_id = any($1::uuid[]) group by token_id',
    values: [plains(tokenIds)],
  })
  return new Map(rows.map(row => [row.token_id, row.rows]))
}

export type NewScheme = Pick<
  StoredScheme,
  | 'provisionId'
  | 'tokenId'
  | 'tokenScope'
  | 'clientId'
  | 'provider'
  | 'background'
  | 'card'
  | 'cardVersion'
  | 'dueAt'
  | 'createdAt'
> &
  Partial<Pick<StoredScheme, 'thirdParty' | 'fingerprint'>>

const moment = (ms: number | null) => (ms === null ? null : new Date(ms).toISOString())
const binary = (bytes: Buffer | null | undefined) => (bytes ? `\\x${bytes.toString('hex')}` : null)
const NEW: readonly Column<NewScheme>[] = [
  { name: 'provision_id', type: 'uuid', text: row => row.provisionId, plain: true },
  { name: 'token_id', type: 'uuid', text: row => row.tokenId, plain: true },
  { name: 'token_scope', type: 'uuid', text: row => row.tokenScope, plain: true },
  { name: 'client_id', type: 'text', text: row => row.clientId, plain: true },
  { name: 'provider', type: 'text', text: row => row.provider, plain: false },
  { name: 'background', type: 'boolean', text: row => (row.background ? 't' : 'f'), plain: true },
  { name: 'card', type: 'bytea', text: row => binary(row.card), plain: false },
  { name: 'card_version', type: 'smallint', text: row => row.cardVersion, plain: true },
  { name: 'third_party', type: 'boolean', text: row => (row.thirdParty ? 't' : 'f'), plain: true },
  { name: 'fingerprint', type: 'bytea', text: row => binary(row.fingerprint), plain: false },
  { name: 'due_at', type: 'timestamptz', text: row => moment(row.dueAt), plain: false },
  { name: 'created_at', type: 'timestamptz', text: row => moment(row.createdAt), plain: false },
]
const NEW_NAMES = NEW.map(({ name }) => name).join(', ')

/**
 * Makes these, PENDING, the current ones of their tokens; what was current before must have been displaced. A third
 * party's is left out where its card has got one meanwhile: answers how many were made.
 */
export async function insertAll(db: Db, schemes: readonly NewScheme[]): Promise<number> {
  if (schemes.length === 0) return 0
  const { shape, source, values } = rowSet(NEW, schemes)
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
export const FORGOTTEN = `fingerprint = null, card = case when third_party then null else card end,
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

/** Somebody relies on them as they are: whoever made them so can't take it back any more. */
export async function buildOn(db: Db, provisionIds: readonly string[]): Promise<void> {
  if (provisionIds.length === 0) return
  await db.query({
    name: 'scheme-build-on',
    text: 'update tokenmill.scheme_token set last_intent = null where provision_id = any($1::uuid[]) and last_intent is not null',
    values: [plains(provisionIds)],
  })
}

/**
 * As `retireOf`, of one provisioning that is to leave no trace: its token shows it no more. `intentId`: only while nobody
 * has built on what that intended. False where somebody has.
 */
export async function withdraw(
  db: Db,
  provisionId: string,
  now: number,
  intentId: string | null = null,
): Promise<boolean> {
  const { count } = await db.query({
    text: `update tokenmill.scheme_token set current = false, version = version + 1, updated_at = $2, ${FORGOTTEN},
  retired_at = case when state in ('DELETED', 'VOID') then retired_at else coalesce(retired_at, $2) end,
  due_at = case when state in ('DELETED', 'VOID') or lease is not null then due_at else $2 end
where provision_id = $1 and ($3::uuid is null or last_intent = $3)`,
    values: [provisionId, new Date(now), intentId],
  })
  return count === 1
}

/** Those of which the network has yet to be asked or told something, oldest first. */
export async function listOpen(db: Db, limit: number): Promise<StoredScheme[]> {
  const { rows } = await db.query<Row>({
    text: `select ${COLUMNS} from tokenmill.scheme_token where due_at is not null or state = 'PENDING'
order by updated_at limit $1`,
    values: [limit],
  })
  return rows.map(schemeOf)
}

/** The last changed first. */
export async function listLatest(db: Db, limit: number): Promise<StoredScheme[]> {
  const { rows } = await db.query<Row>({
    text: `select ${COLUMNS} from tokenmill.scheme_token order by updated_at desc limit $1`,
    values: [limit],
  })
  return rows.map(schemeOf)
}

export interface OpenCount {
  what: 'provision' | 'delete' | 'ask'
  rows: number
  /** ms since the epoch. */
  oldest: number
}

export async function countOpen(db: Db): Promise<OpenCount[]> {
  const { rows } = await db.query<OpenCount>({
    text: `select case when retired_at is not null then 'delete' when state = 'PENDING' then 'provision' else 'ask' end as what,
  count(*) as rows, min(coalesce(retired_at, updated_at)) as oldest
from tokenmill.scheme_token where due_at is not null group by 1`,
  })
  return rows
}

/** What nothing is left of, and no token shows. Returns how many. */
export async function eraseOld(db: Db, before: number): Promise<number> {
  const { count } = await db.query({
    text: `delete from tokenmill.scheme_token where state in ('DELETED', 'VOID') and not current and updated_at < $1`,
    values: [new Date(before)],
  })
  return count
}
