// The token table. Tokens are found by card or by id, and saved as sets: one statement per table and chunk. A single
// job is a set of one.
import { uuids } from '../binary.ts'
import { listOf, plains, rowSet, texts } from '../columns.ts'
import { type Db, LostRace } from '../pool.ts'
import * as cards from './cards.ts'
import { type NewTokens, sourceFor, valuesOf } from './new-tokens.ts'
import { type CardsOfRow, COLUMNS, NAMES, type Row, SELECTED, type StoredToken, tokenOf } from './token-row.ts'

export { type StoredToken, type ThirdPartyColumns, thirdPartyOf } from './token-row.ts'

// One look-up per card within one statement. With `= any(…)` PostgreSQL could keep a plan that it made while the table
// was empty, which becomes slow as the table grows.
const FIND_BY_CARD = `select found.*
from unnest(${listOf(1, 'uuid')}) as wanted(fp)
cross join lateral (select token_id as owner from tokenmill.card where fp = wanted.fp limit 1) as known
cross join lateral (
  select ${SELECTED}
  from tokenmill.token
  where token_id = known.owner
  limit 1
) as found`
const FIND_BY_ID = `select found.*
from unnest(${listOf(1, 'uuid')}) as wanted(id)
cross join lateral (
  select ${SELECTED}
  from tokenmill.token
  where token_id = wanted.id
  limit 1
) as found`

/**
 * The live tokens that have one of these fingerprints, each once; fingerprints without one are left out. `fps`: their texts,
 * or the bytes of all.
 */
export async function findByCards(db: Db, fps: readonly string[] | Buffer): Promise<StoredToken[]> {
  const values = [Buffer.isBuffer(fps) ? uuids(fps) : plains(fps)]
  const { rows } = await db.query<Row>({ name: 'tokens-by-card', text: FIND_BY_CARD, values })
  return [...new Map(rows.map(row => [row.tokenId, row])).values()].map(tokenOf)
}

/** Tokens by id, also deleted ones. */
export async function findByIds(db: Db, tokenIds: readonly string[]): Promise<StoredToken[]> {
  const { rows } = await db.query<Row>({ name: 'tokens-by-id', text: FIND_BY_ID, values: [plains(tokenIds)] })
  return rows.map(tokenOf)
}

/** Reads one token. Its row stays locked until the transaction ends: another transaction that writes it waits. */
export async function hold(db: Db, tokenId: string): Promise<StoredToken | undefined> {
  const { rows } = await db.query<Row>({
    text: `select ${SELECTED}
from tokenmill.token
where token_id = $1
for update`,
    values: [tokenId],
  })
  return rows[0] && tokenOf(rows[0])
}

/** Reads these tokens. Their rows stay locked until the transaction ends: another transaction that changes one waits. */
export async function holdAll(
  db: Db,
  tokenIds: readonly string[],
): Promise<Map<string, Pick<StoredToken, 'status' | 'cards' | 'version'>>> {
  const { rows } = await db.query<Pick<StoredToken, 'tokenId' | 'status' | 'cards' | 'version'>>({
    name: 'tokens-hold',
    text: `select
  token_id as "tokenId",
  status,
  coalesce(cards, '{}') as cards,
  version
from tokenmill.token
where token_id = any($1::uuid[])
order by token_id
for no key update`,
    values: [plains(tokenIds)],
  })
  return new Map(rows.map(row => [row.tokenId, row]))
}

/** The versions of those of these tokens that no other transaction is changing: their rows stay locked, as by `holdAll`. */
export async function holdFree(db: Db, tokenIds: readonly string[]): Promise<Map<string, number>> {
  if (tokenIds.length === 0) return new Map()
  const { rows } = await db.query<Pick<StoredToken, 'tokenId' | 'version'>>({
    name: 'tokens-hold-free',
    text: `select token_id as "tokenId", version
from tokenmill.token
where token_id = any($1::uuid[])
order by token_id
for no key update skip locked`,
    values: [plains(tokenIds)],
  })
  return new Map(rows.map(row => [row.tokenId, row.version]))
}

/**
 * Inserts tokens of cards that have none yet; some tokens may be in columns. Returns the ids of those tokens whose card
 * another transaction has just given a token: they aren't inserted. Cards are sorted, so that two chunks with the same
 * cards lock them in the same order.
 */
export async function insertMissing(
  db: Db,
  tokens: readonly StoredToken[],
  columns?: NewTokens,
): Promise<ReadonlySet<string>> {
  if (tokens.length === 0 && !columns) return NOBODY
  const sorted = tokens.toSorted((a, b) => ((a.cards[0] ?? '') < (b.cards[0] ?? '') ? -1 : 1))
  const [, , losers] = await Promise.all([
    insertRows(db, sorted),
    columns && insertColumns(db, columns),
    cards.insertMissing(db, sorted, columns),
  ])
  await removeNew(db, [...losers].sort())
  return losers
}

async function insertRows(db: Db, tokens: readonly StoredToken[]): Promise<void> {
  if (tokens.length === 0) return
  const { shape, source, values } = rowSet(COLUMNS, tokens)
  await db.query({ name: `tokens-insert-${shape}`, text: insertText(source), values })
}

async function insertColumns(db: Db, columns: NewTokens): Promise<void> {
  const { name, text } = sourceFor(columns)
  await db.query({ name: `tokens-insert-${name}`, text: insertText(text), values: valuesOf(columns) })
}

const insertText = (source: string) => `insert into tokenmill.token (${NAMES})
select ${NAMES}
from ${source}`
const NOBODY: ReadonlySet<string> = new Set()

/** Removes tokens that this transaction has inserted: no other transaction has seen them. */
async function removeNew(db: Db, tokenIds: readonly string[]): Promise<void> {
  if (tokenIds.length === 0) return
  await db.query({
    name: 'tokens-remove-new',
    text: `delete from tokenmill.token
where token_id = any($1::uuid[])`,
    values: [plains(tokenIds)],
  })
}

/** Inserts all tokens, or throws LostRace. */
export async function insertAll(db: Db, tokens: readonly StoredToken[]): Promise<void> {
  const lost = await insertMissing(db, tokens)
  if (lost.size > 0) throw new LostRace('a card got its token meanwhile')
}

const CHANGED = COLUMNS.filter(({ name }) => name !== 'token_id' && name !== 'token_scope' && name !== 'created_at')
const SET = CHANGED.map(({ name }) => `${name} = v.${name}`).join(', ')

/** Updates rows whose version is one above the one that was read. Updates all, or throws LostRace. */
export async function updateAll(db: Db, tokens: readonly StoredToken[]): Promise<void> {
  if (tokens.length === 0) return
  const sorted = tokens.toSorted((a, b) => (a.tokenId < b.tokenId ? -1 : 1))
  const { shape, source, values } = rowSet(COLUMNS, sorted)
  const [{ count }] = await Promise.all([
    db.query({
      name: `tokens-update-${shape}`,
      text: `update tokenmill.token as t
set ${SET}
from ${source}
where t.token_id = v.token_id and t.version = v.version - 1`,
      values,
    }),
    cards.changeAll(db, sorted),
  ])
  if (count !== tokens.length) throw new LostRace('a token was changed meanwhile')
}

/** The last receipt of a token, for a job that changes nothing else in the row. */
export interface Touch {
  tokenId: string
  receiptId: string
  version: number
}

/** Writes receipts into different tokens: all of them, or throws LostRace. */
export async function touchAll(db: Db, touches: readonly Touch[]): Promise<void> {
  if (touches.length === 0) return
  const sorted = touches.toSorted((a, b) => (a.tokenId < b.tokenId ? -1 : 1))
  const { count } = await db.query({
    name: 'tokens-touch',
    text: `update tokenmill.token as t
set last_receipt = v.receipt
from unnest($1::uuid[], $2::uuid[], $3::integer[]) as v(id, receipt, version)
where t.token_id = v.id and t.version = v.version`,
    values: [
      plains(sorted.map(({ tokenId }) => tokenId)),
      plains(sorted.map(({ receiptId }) => receiptId)),
      plains(sorted.map(({ version }) => version)),
    ],
  })
  if (count !== touches.length) throw new LostRace('a token was changed meanwhile')
}

/** Writes the receipt of a batch into live tokens for which the batch changed something outside their rows. */
export async function nameReceipt(db: Db, tokenIds: readonly string[], receiptId: string): Promise<void> {
  if (tokenIds.length === 0) return
  await db.query({
    name: 'tokens-name-receipt',
    text: `update tokenmill.token
set last_receipt = $2
where token_id = any($1::uuid[]) and status <> 'DELETED'`,
    values: [plains(tokenIds), receiptId],
  })
}

/** A row that gets other fingerprints for the card that it has. `version`: the row's version when it was read. */
export type RenewedCards = CardsOfRow & Pick<StoredToken, 'version'>

/**
 * Writes the fingerprints of rows that nobody has changed since they were read; the others are left out. Returns how
 * many were written. Throws `CardTaken` and `CardPhaseChanged`.
 */
export async function renewCards(db: Db, rows: readonly RenewedCards[]): Promise<number> {
  if (rows.length === 0) return 0
  const sorted = rows.toSorted((a, b) => (a.tokenId < b.tokenId ? -1 : 1))
  const { rows: written } = await db.query<Pick<StoredToken, 'tokenId'>>({
    name: 'tokens-renew-cards',
    text: `update tokenmill.token as t
set cards = v.cards::uuid[], version = t.version + 1
from unnest($1::uuid[], $2::integer[], $3::text[]) as v(id, version, cards)
where t.token_id = v.id and t.version = v.version
returning t.token_id as "tokenId"`,
    values: [
      plains(sorted.map(({ tokenId }) => tokenId)),
      plains(sorted.map(({ version }) => version)),
      texts(sorted.map(row => plains(row.cards))),
    ],
  })
  const ids = new Set(written.map(({ tokenId }) => tokenId))
  await cards.changeAll(
    db,
    sorted.filter(({ tokenId }) => ids.has(tokenId)),
  )
  return ids.size
}

/** Removes a forgotten fingerprint from the row of each of these tokens. */
export async function forgetCards(db: Db, forgotten: readonly { fp: string; tokenId: string }[]): Promise<void> {
  if (forgotten.length === 0) return
  const sorted = forgotten.toSorted((a, b) => (a.tokenId < b.tokenId ? -1 : 1))
  await db.query({
    name: 'tokens-forget-cards',
    text: `update tokenmill.token as t
set version = t.version + 1, cards = array_remove(t.cards, v.fp)
from unnest($1::uuid[], $2::uuid[]) as v(id, fp)
where t.token_id = v.id`,
    values: [plains(sorted.map(({ tokenId }) => tokenId)), plains(sorted.map(({ fp }) => fp))],
  })
}
