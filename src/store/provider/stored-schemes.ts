// Reads whole rows of scheme tokens for workers; some functions lock them until the transaction ends. scheme-tokens.ts
// writes the rows.
import { plains, texts } from '../columns.ts'
import type { Db } from '../pool.ts'
import { COLUMNS, type StoredScheme } from './scheme-row.ts'

/** The current provisionings of these tokens, locked until the transaction ends. */
export async function holdCurrent(db: Db, tokenIds: readonly string[]): Promise<StoredScheme[]> {
  const { rows } = await db.query<StoredScheme>({
    name: 'scheme-hold-current',
    text: `select ${COLUMNS}
from tokenmill.scheme_token
where token_id = any($1::uuid[]) and current
order by provision_id
for update`,
    values: [plains(tokenIds)],
  })
  return rows
}

/** The current provisionings of these tokens. */
export async function findCurrent(db: Db, tokenIds: readonly string[]): Promise<StoredScheme[]> {
  const { rows } = await db.query<StoredScheme>({
    name: 'scheme-find-current',
    text: `select ${COLUMNS}
from tokenmill.scheme_token
where token_id = any($1::uuid[]) and current`,
    values: [plains(tokenIds)],
  })
  return rows
}

/** The provisionings with these ids; missing ones are left out. */
export async function findAll(db: Db, provisionIds: readonly string[]): Promise<StoredScheme[]> {
  const { rows } = await db.query<StoredScheme>({
    name: 'scheme-find',
    text: `select ${COLUMNS}
from tokenmill.scheme_token
where provision_id = any($1::uuid[])`,
    values: [plains(provisionIds)],
  })
  return rows
}

export async function find(db: Db, provisionId: string): Promise<StoredScheme | undefined> {
  return (await findAll(db, [provisionId]))[0]
}

/** The provisionings of one provider with these references. */
export async function findByReferences(
  db: Db,
  provider: string,
  references: readonly string[],
): Promise<StoredScheme[]> {
  const { rows } = await db.query<StoredScheme>({
    name: 'scheme-by-reference',
    text: `select ${COLUMNS}
from tokenmill.scheme_token
where provider = $1 and reference = any($2::text[])`,
    values: [provider, texts(references)],
  })
  return rows
}

/** Provisionings that have a reference, in the order of their ids from this one on. */
export async function listNamed(db: Db, from: string, limit: number): Promise<StoredScheme[]> {
  const { rows } = await db.query<StoredScheme>({
    text: `select ${COLUMNS}
from tokenmill.scheme_token
where provision_id >= $1 and reference is not null
order by provision_id
limit $2`,
    values: [from, limit],
  })
  return rows
}

/**
 * The id of the token's current provisioning, if a job made it with the card and retired none with the former card; else
 * none.
 */
export async function findFirst(db: Db, tokenId: string): Promise<string[]> {
  const { rows } = await db.query<{ id: string }>({
    name: 'scheme-find-first',
    text: `select provision_id as id
from tokenmill.scheme_token as t
where token_id = $1 and current and taken_at is not null
and not exists (select from tokenmill.scheme_token as former where former.token_id = $1 and former.retired_at = t.taken_at)`,
    values: [tokenId],
  })
  return rows.map(({ id }) => id)
}

/** How many provisionings each of these tokens has had. */
export async function countOf(db: Db, tokenIds: readonly string[]): Promise<Map<string, number>> {
  const { rows } = await db.query<Pick<StoredScheme, 'tokenId'> & { rows: number }>({
    name: 'scheme-count',
    text: `select token_id as "tokenId", count(*) as rows
from tokenmill.scheme_token
where token_id = any($1::uuid[])
group by token_id`,
    values: [plains(tokenIds)],
  })
  return new Map(rows.map(row => [row.tokenId, row.rows]))
}

/**
 * The third parties' provisionings for these cards that are or may become a token, locked until the transaction ends.
 */
export async function holdByCards(db: Db, fps: readonly string[]): Promise<StoredScheme[]> {
  const { rows } = await db.query<StoredScheme>({
    name: 'third-party-hold-by-card',
    text: `select ${COLUMNS}
from tokenmill.scheme_token
where provision_id = any(array(
  select found.id
  from unnest($1::uuid[]) as wanted(fp)
  cross join lateral (select provision_id as id from tokenmill.scheme_card where fp = wanted.fp limit 1) as found
))
order by provision_id
for update`,
    values: [plains(fps)],
  })
  // Leaves out rows that were given up while this transaction waited for their lock: they have no card any more.
  return rows.filter(({ cards }) => cards.length > 0)
}

/** The provisionings with these ids, locked until the transaction ends; missing ones are left out. */
export async function holdAll(db: Db, provisionIds: readonly string[]): Promise<StoredScheme[]> {
  const { rows } = await db.query<StoredScheme>({
    name: 'scheme-hold',
    text: `select ${COLUMNS}
from tokenmill.scheme_token
where provision_id = any($1::uuid[])
order by provision_id
for update`,
    values: [plains(provisionIds)],
  })
  return rows
}

/** Provisionings for which the provider must still be called, longest unchanged first. */
export async function listOpen(db: Db, limit: number): Promise<StoredScheme[]> {
  const { rows } = await db.query<StoredScheme>({
    text: `select ${COLUMNS}
from tokenmill.scheme_token
where due_at is not null or state = 'PENDING'
order by updated_at
limit $1`,
    values: [limit],
  })
  return rows
}

/** Provisionings, last changed first. */
export async function listLatest(db: Db, limit: number): Promise<StoredScheme[]> {
  const { rows } = await db.query<StoredScheme>({
    text: `select ${COLUMNS}
from tokenmill.scheme_token
order by updated_at desc
limit $1`,
    values: [limit],
  })
  return rows
}

export interface OpenCount {
  what: 'provision' | 'delete' | 'ask'
  rows: number
  /** When the oldest of them was retired or last changed, ms since the epoch. */
  oldest: number
}

export async function countOpen(db: Db): Promise<OpenCount[]> {
  const { rows } = await db.query<OpenCount>({
    text: `select case when retired_at is not null then 'delete' when state = 'PENDING' then 'provision' else 'ask' end as what,
  count(*) as rows, min(coalesce(retired_at, updated_at)) as oldest
from tokenmill.scheme_token
where due_at is not null
group by 1`,
  })
  return rows
}
