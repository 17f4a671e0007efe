// The token table. Tokens are found by card or by id, and saved as sets: one statement per table and chunk. A single
// job is a set of one.
import type { BatchMark, ThirdPartyName, TokenRow } from '../../token/token.ts'
import { byteas, type Column, listOf, plains, rowSet, texts } from '../columns.ts'
import { type Db, LostRace } from '../pool.ts'

/** A token as it is stored: the fields that the rules use, and the version of the key that sealed its PAN. */
export interface StoredToken extends TokenRow {
  sealVersion: number | null
}

interface Row {
  token_id: string
  token_scope: string
  status: TokenRow['status']
  suspended_reason: TokenRow['suspendedReason']
  token_type: TokenRow['tokenType']
  fingerprint: Buffer | null
  sealed: Buffer | null
  seal_version: number | null
  bin: string | null
  last_four: string | null
  expiry_month: number | null
  expiry_year: number | null
  card_holder_name: string | null
  card_holder_email: string | null
  card_sequence: string | null
  start_month: number | null
  start_year: number | null
  brand: string | null
  card_brand: string | null
  bin_range: number | null
  analytics_token: string | null
  third_party_type: string | null
  third_party_token: string | null
  token_expiry_date: string | null
  created_at: number
  updated_at: number
  version: number
  last_receipt: string | null
  batch_no: number | null
  batch_created: boolean | null
  batch_line: number | null
  batch_lines: BatchMark['lines']
}

const column = (
  name: keyof Row,
  type: string,
  text: Column<StoredToken>['text'],
  plain = true,
): Column<StoredToken> => ({ name, type, text, plain })
const flag = (value: boolean | undefined) => (value === undefined ? null : value ? 't' : 'f')
// The rows of a chunk have the same time, and formatting a time takes longer than the rest of a row.
let lastMoment = { ms: 0, text: new Date(0).toISOString() }
function moment(ms: number): string {
  if (lastMoment.ms !== ms) lastMoment = { ms, text: new Date(ms).toISOString() }
  return lastMoment.text
}
const binary = (value: Buffer | null) => (value === null ? null : `\\x${value.toString('hex')}`)

const COLUMNS: readonly Column<StoredToken>[] = [
  column('token_id', 'uuid', t => t.tokenId),
  column('token_scope', 'uuid', t => t.tokenScope),
  column('status', 'text', t => t.status),
  column('suspended_reason', 'text', t => t.suspendedReason),
  column('token_type', 'text', t => t.tokenType),
  column('fingerprint', 'bytea', t => binary(t.fingerprint), false),
  column('sealed', 'bytea', t => binary(t.sealed), false),
  column('seal_version', 'smallint', t => t.sealVersion),
  column('bin', 'text', t => t.bin),
  column('last_four', 'text', t => t.lastFour),
  column('expiry_month', 'smallint', t => t.expiryMonth),
  column('expiry_year', 'smallint', t => t.expiryYear),
  column('card_holder_name', 'text', t => t.cardHolderName, false),
  column('card_holder_email', 'text', t => t.cardHolderEmail, false),
  column('card_sequence', 'text', t => t.cardSequence, false),
  column('start_month', 'smallint', t => t.startMonth),
  column('start_year', 'smallint', t => t.startYear),
  column('brand', 'text', t => t.brand),
  column('card_brand', 'text', t => t.cardBrand),
  column('bin_range', 'integer', t => t.binRange),
  column('analytics_token', 'text', t => t.analyticsToken),
  column('third_party_type', 'text', t => t.thirdParty?.type ?? null),
  column('third_party_token', 'text', t => t.thirdParty?.token ?? null, false),
  column('token_expiry_date', 'date', t => t.tokenExpiryDate),
  column('created_at', 'timestamptz', t => moment(t.createdAt), false),
  column('updated_at', 'timestamptz', t => moment(t.updatedAt), false),
  column('version', 'integer', t => t.version),
  column('last_receipt', 'uuid', t => t.lastReceipt),
  column('batch_no', 'bigint', t => t.mark?.batchNo ?? null),
  column('batch_created', 'boolean', t => flag(t.mark?.created)),
  column('batch_line', 'integer', t => t.mark?.line ?? null),
  column('batch_lines', 'jsonb', t => (t.mark?.lines ? JSON.stringify(t.mark.lines) : null), false),
]
const NAMES = COLUMNS.map(({ name }) => name).join(', ')

/** The third party's name for a token, from the columns of its row. */
export function thirdPartyOf({
  third_party_type: type,
  third_party_token: token,
}: Pick<Row, 'third_party_type' | 'third_party_token'>): ThirdPartyName | null {
  return type === null || token === null ? null : { type, token }
}

function tokenOf(row: Row): StoredToken {
  return {
    tokenId: row.token_id,
    tokenScope: row.token_scope,
    status: row.status,
    suspendedReason: row.suspended_reason,
    tokenType: row.token_type,
    fingerprint: row.fingerprint,
    sealed: row.sealed,
    sealVersion: row.seal_version,
    bin: row.bin,
    lastFour: row.last_four,
    expiryMonth: row.expiry_month,
    expiryYear: row.expiry_year,
    cardHolderName: row.card_holder_name,
    cardHolderEmail: row.card_holder_email,
    cardSequence: row.card_sequence,
    startMonth: row.start_month,
    startYear: row.start_year,
    brand: row.brand,
    cardBrand: row.card_brand,
    binRange: row.bin_range,
    analyticsToken: row.analytics_token,
    thirdParty: thirdPartyOf(row),
    tokenExpiryDate: row.token_expiry_date,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    version: row.version,
    lastReceipt: row.last_receipt,
    mark:
      row.batch_no === null
        ? null
        : {
            batchNo: row.batch_no,
            created: row.batch_created === true,
            line: row.batch_line ?? 0,
            lines: row.batch_lines,
          },
  }
}

// One look-up per card within one statement. With `= any(…)` PostgreSQL could keep a plan that it made while the table
// was empty, which becomes slow as the table grows.
const FIND_BY_FINGERPRINT = `select ${NAMES} from unnest(${listOf(1, 'bytea')}) as wanted(card)
cross join lateral (select ${NAMES} from tokenmill.token where fingerprint = wanted.card limit 1) as found`
const FIND_BY_ID = `select ${NAMES} from unnest(${listOf(1, 'uuid')}) as wanted(id)
cross join lateral (select ${NAMES} from tokenmill.token where token_id = wanted.id limit 1) as found`

/** The live tokens of these cards; cards without one are left out. */
export async function findByFingerprints(db: Db, fingerprints: readonly Buffer[]): Promise<StoredToken[]> {
  const { rows } = await db.query<Row>({
    name: 'tokens-by-card',
    text: FIND_BY_FINGERPRINT,
    values: [byteas(fingerprints)],
  })
  return rows.map(tokenOf)
}

/** Tokens by id, also deleted ones. */
export async function findByIds(db: Db, tokenIds: readonly string[]): Promise<StoredToken[]> {
  const { rows } = await db.query<Row>({ name: 'tokens-by-id', text: FIND_BY_ID, values: [plains(tokenIds)] })
  return rows.map(tokenOf)
}

/** Live tokens of third parties, by the third parties' values; several tokens may have the same value. */
export async function findByThirdParty(db: Db, names: readonly string[]): Promise<StoredToken[]> {
  if (names.length === 0) return []
  const { rows } = await db.query<Row>({
    name: 'tokens-by-third-party',
    text: `select found.* from tokenmill.scheme_token as s
cross join lateral (select ${NAMES} from tokenmill.token where token_id = s.token_id and status <> 'DELETED' limit 1) as found
where s.third_party and s.state = 'ACTIVE' and s.reference = any($1::text[])`,
    values: [texts(names)],
  })
  return rows.map(tokenOf)
}

/** One token. Its row stays locked until the transaction ends: another writer of a receipt waits. */
export async function hold(db: Db, tokenId: string): Promise<StoredToken | undefined> {
  const { rows } = await db.query<Row>({
    text: `select ${NAMES} from tokenmill.token where token_id = $1 for update`,
    values: [tokenId],
  })
  const row = rows[0]
  return row && tokenOf(row)
}

/** These tokens. Their rows stay locked until the transaction ends: another transaction that changes one waits. */
export async function holdAll(
  db: Db,
  tokenIds: readonly string[],
): Promise<Map<string, Pick<StoredToken, 'status' | 'fingerprint'>>> {
  const { rows } = await db.query<Pick<Row, 'token_id' | 'status' | 'fingerprint'>>({
    name: 'tokens-hold',
    text: `select token_id, status, fingerprint from tokenmill.token where token_id = any($1::uuid[])
order by token_id for no key update`,
    values: [plains(tokenIds)],
  })
  return new Map(rows.map(row => [row.token_id, { status: row.status, fingerprint: row.fingerprint }]))
}

/**
 * Inserts tokens of cards that have none yet. Returns the cards (latin1 of the fingerprint) for which another
 * transaction has just inserted a token. Rows are sorted by fingerprint, so that two chunks with the same cards lock
 * them in the same order.
 */
export async function insertMissing(db: Db, tokens: readonly StoredToken[]): Promise<string[]> {
  if (tokens.length === 0) return []
  const sorted = tokens.toSorted((a, b) => Buffer.compare(a.fingerprint ?? NOTHING, b.fingerprint ?? NOTHING))
  const { shape, source, values } = rowSet(COLUMNS, sorted)
  const { count } = await db.query({
    name: `tokens-insert-${shape}`,
    text: `insert into tokenmill.token (${NAMES}) select ${NAMES} from ${source}
on conflict on constraint one_live_token_per_card do nothing`,
    values,
  })
  if (count === tokens.length) return []
  // This happens seldom, so a search is cheaper than returning the ids of every chunk.
  const inserted = await findIds(
    db,
    sorted.map(({ tokenId }) => tokenId),
  )
  return sorted
    .filter(({ tokenId }) => !inserted.has(tokenId))
    .map(({ fingerprint }) => fingerprint?.toString('latin1') ?? '')
}
const NOTHING = Buffer.alloc(0)

/** Inserts all tokens, or throws LostRace. */
export async function insertAll(db: Db, tokens: readonly StoredToken[]): Promise<void> {
  const lost = await insertMissing(db, tokens)
  if (lost.length > 0) throw new LostRace('a card got its token meanwhile')
}

async function findIds(db: Db, tokenIds: readonly string[]): Promise<Set<string>> {
  const { rows } = await db.query<{ token_id: string }>({
    name: 'token-ids',
    text: `select found.token_id from unnest($1::uuid[]) as wanted(id)
cross join lateral (select token_id from tokenmill.token where token_id = wanted.id limit 1) as found`,
    values: [plains(tokenIds)],
  })
  return new Set(rows.map(row => row.token_id))
}

const CHANGED = COLUMNS.filter(({ name }) => name !== 'token_id' && name !== 'token_scope' && name !== 'created_at')
const SET = CHANGED.map(({ name }) => `${name} = v.${name}`).join(', ')

/** Updates rows whose version is one above the one that was read. Updates all, or throws LostRace. */
export async function updateAll(db: Db, tokens: readonly StoredToken[]): Promise<void> {
  if (tokens.length === 0) return
  const sorted = tokens.toSorted((a, b) => (a.tokenId < b.tokenId ? -1 : 1))
  const { shape, source, values } = rowSet(COLUMNS, sorted)
  const { count } = await db.query({
    name: `tokens-update-${shape}`,
    text: `update tokenmill.token as t set ${SET} from ${source} where t.token_id = v.token_id and t.version = v.version - 1`,
    values,
  })
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
    text: `update tokenmill.token as t set last_receipt = v.receipt
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
    text: `update tokenmill.token set last_receipt = $2 where token_id = any($1::uuid[]) and status <> 'DELETED'`,
    values: [plains(tokenIds), receiptId],
  })
}
