// Source references: for whom a card is on file. They are found by owner or by token, and saved as sets.
import { CHUNK } from '../../job/choices.ts'
import { type OwnerId, ownerKey, type SourceReference } from '../../token/on-file.ts'
import { type Column, listOf, plains, rowSet } from '../columns.ts'
import { type Db, LostRace } from '../pool.ts'
import { OWNER_COLUMNS, wantedOwners } from './owner-columns.ts'

export interface StoredReference extends SourceReference {
  /** Undefined for a row that isn't stored yet. */
  referenceNo: number | undefined
}

const column = (
  name: string,
  type: string,
  text: Column<StoredReference>['text'],
  plain = true,
): Column<StoredReference> => ({ name, type, text, plain })
// Rows of a chunk share their time.
let lastMoment = { ms: 0, text: new Date(0).toISOString() }
function moment(ms: number): string {
  if (lastMoment.ms !== ms) lastMoment = { ms, text: new Date(ms).toISOString() }
  return lastMoment.text
}

const OWNER: readonly Column<StoredReference>[] = [
  column('token_scope', 'uuid', r => r.tokenScope),
  column('provider', 'text', r => r.provider),
  column('provider_account', 'text', r => r.providerAccount, false),
  column('customer_id', 'text', r => r.customerId, false),
  column('card_id', 'text', r => r.cardId, false),
]
const STATE: readonly Column<StoredReference>[] = [
  column('token_id', 'uuid', r => r.tokenId),
  column('on_file', 'jsonb', r => JSON.stringify(r.onFile), false),
  column('version', 'integer', r => r.version),
  column('updated_at', 'timestamptz', r => moment(r.updatedAt), false),
  column('last_receipt', 'uuid', r => r.lastReceipt),
  column('batch_no', 'bigint', r => r.mark?.batchNo ?? null),
  column('batch_line', 'integer', r => r.mark?.line ?? null),
  column('given_at', 'jsonb', r => (r.givenAt ? JSON.stringify(r.givenAt) : null), false),
  column('before', 'jsonb', r => (r.before ? JSON.stringify(r.before) : null), false),
]
const INSERTED = [...OWNER, column('created_at', 'timestamptz', r => moment(r.createdAt), false), ...STATE]
const NUMBER = column('reference_no', 'bigint', r => r.referenceNo ?? null)
const CHANGED = [NUMBER, ...STATE]
const SET = STATE.map(({ name }) => `${name} = v.${name}`).join(', ')
const INSERTED_NAMES = INSERTED.map(({ name }) => name).join(', ')
const OWNED = `
  r.reference_no as "referenceNo",
  r.token_id as "tokenId",${OWNER_COLUMNS}`
const SELECTED = `${OWNED},
  r.on_file as "onFile",
  r.version,
  r.created_at as "createdAt",
  r.updated_at as "updatedAt",
  r.last_receipt as "lastReceipt",
  r.batch_no as "batchNo",
  r.batch_line as "batchLine",
  r.given_at as "givenAt",
  r.before`

type Row = Omit<StoredReference, 'mark'> & { batchNo: number | null; batchLine: number | null }

function referenceOf(row: Row): StoredReference {
  const { referenceNo, tokenScope, provider, providerAccount, customerId, cardId, tokenId, onFile } = row
  const { version, createdAt, updatedAt, lastReceipt, batchNo, batchLine, givenAt, before } = row
  const mark = batchNo === null ? null : { batchNo, line: batchLine ?? 0 }
  const owner = { tokenScope, provider, providerAccount, customerId, cardId }
  return { ...owner, referenceNo, tokenId, onFile, version, createdAt, updatedAt, lastReceipt, mark, givenAt, before }
}

/** The references of these owners, by `ownerKey`; missing ones are left out. */
export async function findByOwners(db: Db, owners: readonly OwnerId[]): Promise<Map<string, StoredReference>> {
  if (owners.length === 0) return new Map()
  const { shape, from, isWanted, values } = wantedOwners(owners)
  const { rows } = await db.query<Row>({
    name: `references-by-owner-${shape}`,
    text: `select found.*
from ${from}
cross join lateral (
  select ${SELECTED}
  from tokenmill.source_reference as r
  where ${isWanted}
  limit 1
) as found`,
    values,
  })
  return new Map(rows.map(referenceOf).map(reference => [ownerKey(reference), reference]))
}

/** The references of these tokens, oldest first. */
export async function findByTokens(db: Db, tokenIds: readonly string[]): Promise<StoredReference[]> {
  if (tokenIds.length === 0) return []
  const { rows } = await db.query<Row>({
    name: 'references-by-token',
    text: `select found.*
from unnest(${listOf(1, 'uuid')}) as wanted(id)
cross join lateral (
  select ${SELECTED}
  from tokenmill.source_reference as r
  where token_id = wanted.id
  order by reference_no
) as found`,
    values: [plains(tokenIds)],
  })
  return rows.map(referenceOf)
}

/** The references that the single job with this receipt was the last to write. */
export async function findByReceipt(db: Db, receiptId: string): Promise<StoredReference[]> {
  const { rows } = await db.query<Row>({
    text: `select ${SELECTED}
from tokenmill.source_reference as r
where last_receipt = $1 and batch_no is null
order by reference_no`,
    values: [receiptId],
  })
  return rows.map(referenceOf)
}

/** How many owners each of these tokens has; tokens without owners are left out. The caller holds the tokens' rows. */
export async function countOwners(db: Db, tokenIds: readonly string[]): Promise<Map<string, number>> {
  if (tokenIds.length === 0) return new Map()
  const { rows } = await db.query<{ tokenId: string; owners: number }>({
    name: 'reference-owners',
    text: `select token_id as "tokenId", count(*)::integer as owners
from tokenmill.source_reference
where token_id = any($1::uuid[])
group by token_id`,
    values: [plains(tokenIds)],
  })
  return new Map(rows.map(row => [row.tokenId, row.owners]))
}

/** A record takes at most two claims of a token away: by leaving it, and by giving up that a reversal brings it back. */
const CLAIMS_MAX = 2 * CHUNK.recordsMax + 2

/**
 * As `countOwners`, but also counts owners who left the token after `since` (ms): a reversal could bring them back, and
 * they must find their card there. Stops counting at `max`; by default that is more than one chunk can take away.
 */
export async function countClaims(
  db: Db,
  tokenIds: readonly string[],
  since: number,
  max = CLAIMS_MAX,
): Promise<Map<string, number>> {
  if (tokenIds.length === 0) return new Map()
  const { rows } = await db.query<{ tokenId: string; claims: number }>({
    name: 'reference-claims',
    text: `select wanted.id as "tokenId", claimed.claims
from unnest(${listOf(1, 'uuid')}) as wanted(id)
cross join lateral (
  select count(*)::integer as claims
  from (
  (select 1 from tokenmill.source_reference where token_id = wanted.id limit $3)
  union all
  (
    select 1
    from tokenmill.source_reference
    where before is not null and before->>'tokenId' = wanted.id::text
    and before->>'tokenId' <> token_id::text and updated_at > $2
    limit $3
  )
  limit $3) as one
) as claimed
where claimed.claims > 0`,
    values: [plains(tokenIds), new Date(since), max],
  })
  return new Map(rows.map(row => [row.tokenId, row.claims]))
}

/** In the order of the unique index, whose first column tells most owners apart. */
function byOwner(a: OwnerId, b: OwnerId): number {
  return (
    order(a.cardId, b.cardId) ||
    order(a.customerId, b.customerId) ||
    order(a.providerAccount, b.providerAccount) ||
    order(a.provider, b.provider) ||
    order(a.tokenScope, b.tokenScope)
  )
}

function order(a: string, b: string): number {
  return a === b ? 0 : a < b ? -1 : 1
}

/**
 * Inserts all references, sorted by owner. If one of them was added meanwhile, the unique index refuses the statement and
 * the pool throws LostRace: `on conflict` would search the index before each insert.
 */
export async function insertAll(db: Db, references: readonly StoredReference[]): Promise<void> {
  if (references.length === 0) return
  const { shape, source, values } = rowSet(INSERTED, references.toSorted(byOwner))
  await db.query({
    name: `references-insert-${shape}`,
    text: `insert into tokenmill.source_reference (${INSERTED_NAMES})
select ${INSERTED_NAMES}
from ${source}`,
    values,
  })
}

/** Updates rows whose version is one above the one that was read. Updates all, or throws LostRace. */
export async function updateAll(db: Db, references: readonly StoredReference[]): Promise<void> {
  if (references.length === 0) return
  const sorted = references.toSorted((a, b) => (a.referenceNo ?? 0) - (b.referenceNo ?? 0))
  const { shape, source, values } = rowSet(CHANGED, sorted)
  const { count } = await db.query({
    name: `references-update-${shape}`,
    text: `update tokenmill.source_reference as r
set ${SET}
from ${source}
where r.reference_no = v.reference_no and r.version = v.version - 1`,
    values,
  })
  if (count !== references.length) throw new LostRace('a source reference was changed meanwhile')
}

/** Erases what single jobs replaced before `before` (ms), in at most `limit` rows. Returns in how many. */
export async function eraseFormer(db: Db, before: number, limit: number): Promise<number> {
  const { count } = await db.query({
    text: `update tokenmill.source_reference
  set before = null
  where reference_no = any(array(
  select reference_no
  from tokenmill.source_reference
  where before is not null and updated_at < $1
  order by updated_at
  limit $2
  for update skip locked
))`,
    values: [new Date(before), limit],
  })
  return count
}

/** Throws LostRace unless all of these rows still have these versions. */
export async function expectVersions(
  db: Db,
  references: readonly Pick<StoredReference, 'referenceNo' | 'version'>[],
): Promise<void> {
  if (references.length === 0) return
  const { rows } = await db.query<{ unchanged: number }>({
    name: 'references-versions',
    text: `select count(*)::integer as unchanged
from unnest($1::bigint[], $2::integer[]) as v(no, version)
join tokenmill.source_reference as r on r.reference_no = v.no and r.version = v.version`,
    values: versionsOf(references),
  })
  if (rows[0]?.unchanged !== references.length) throw new LostRace('a source reference was changed meanwhile')
}

function versionsOf(references: readonly Pick<StoredReference, 'referenceNo' | 'version'>[]) {
  return [
    plains(references.map(({ referenceNo }) => referenceNo ?? 0)),
    plains(references.map(({ version }) => version)),
  ]
}

/** Whose reference was removed, and from which token. */
export type RemovedReference = OwnerId & Pick<StoredReference, 'referenceNo' | 'tokenId'>

/**
 * Removes all references of these tokens, and returns whose they were. Erases what was kept at the tokens for owners
 * who have moved away. The caller holds the tokens' rows, and deletes the tokens.
 */
export async function removeOf(db: Db, tokenIds: readonly string[]): Promise<RemovedReference[]> {
  if (tokenIds.length === 0) return []
  const { rows } = await db.query<RemovedReference>({
    name: 'references-remove-of',
    // One statement changes a row once: rows that are removed aren't erased.
    text: `with erased as (
  update tokenmill.source_reference
  set before = jsonb_set(before, '{onFile}', '{}')
  where before is not null and before->>'tokenId' = any($1::uuid[]::text[]) and token_id <> all($1::uuid[]))
delete from tokenmill.source_reference as r
where token_id = any($1::uuid[])
returning ${OWNED}`,
    values: [plains(tokenIds)],
  })
  return rows
}

/** Removes these rows if all of them still have these versions; otherwise throws LostRace. */
export async function removeAll(
  db: Db,
  references: readonly Pick<StoredReference, 'referenceNo' | 'version'>[],
): Promise<void> {
  if (references.length === 0) return
  const { count } = await db.query({
    name: 'references-remove',
    text: `delete from tokenmill.source_reference as r
using unnest($1::bigint[], $2::integer[]) as v(no, version)
where r.reference_no = v.no and r.version = v.version`,
    values: versionsOf(references),
  })
  if (count !== references.length) throw new LostRace('a source reference was changed meanwhile')
}
