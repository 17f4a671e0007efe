// The table and the statements of the bare loop, as of commit 55c0cab: the columns, constraints and indexes that tokens had
// then, a look-up of the chunk's fingerprints, and one insert with an array for each column whose values differ.
import pg from 'pg'

/** What differs from token to token; the other columns have the same value in every row. */
export interface BareToken {
  tokenId: string
  tokenScope: string
  fingerprint: Buffer
  sealed: Buffer
  bin: string
  lastFour: string
  brand: string | null
  /** ms since the epoch. */
  createdAt: number
}

interface Column {
  name: string
  type: string
  text: (token: BareToken) => string | number | null
  /** Its texts hold nothing that an array literal must quote. */
  isPlain: boolean
}

const TABLE = `drop schema if exists bare cascade;
create schema bare;
create table bare.token (
  token_id uuid primary key,
  token_scope uuid not null,
  status text not null,
  suspended_reason text,
  token_type text not null,
  fingerprint bytea,
  sealed bytea,
  seal_version smallint,
  bin text,
  last_four text,
  expiry_month smallint,
  expiry_year smallint,
  card_holder_name text,
  card_holder_email text,
  card_sequence text,
  start_month smallint,
  start_year smallint,
  brand text,
  card_brand text,
  bin_range integer,
  analytics_token text,
  token_expiry_date date,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  version integer not null,
  last_receipt uuid,
  batch_no bigint,
  batch_created boolean,
  batch_line integer,
  batch_lines jsonb,
  third_party_type text,
  third_party_token text,
  constraint one_live_token_per_card unique (fingerprint),
  constraint token_status_is_known check (status in ('ACTIVE', 'SUSPENDED', 'DELETED')),
  constraint only_suspended_has_a_reason check ((status = 'SUSPENDED') = (suspended_reason is not null)),
  constraint deleted_keeps_no_card_data check (
    status <> 'DELETED'
    or (fingerprint is null and sealed is null and bin is null and last_four is null and card_holder_name is null
        and card_holder_email is null and analytics_token is null)
  ),
  constraint live_has_a_fingerprint check (status = 'DELETED' or fingerprint is not null),
  constraint analytics_keeps_no_card check (token_type <> 'ANALYTICS' or sealed is null),
  constraint sealed_names_its_key check ((sealed is null) = (seal_version is null)),
  constraint third_party_token_names_its_type check ((third_party_type is null) = (third_party_token is null)),
  constraint third_party_keeps_the_card check (third_party_type is null or sealed is null)
);
create index token_expires on bare.token (token_expiry_date, token_id)
  where token_expiry_date is not null and status = 'ACTIVE';`

const column = (name: string, type: string, text: Column['text'], isPlain = true): Column => ({
  name,
  type,
  text,
  isPlain,
})
const binary = (value: Buffer) => `\\x${value.toString('hex')}`
// Rows of a chunk have the same time, and its text takes longer than anything else of a row.
let lastTime = { ms: 0, text: new Date(0).toISOString() }
function timeText(ms: number): string {
  if (lastTime.ms !== ms) lastTime = { ms, text: new Date(ms).toISOString() }
  return lastTime.text
}

const COLUMNS: readonly Column[] = [
  column('token_id', 'uuid', token => token.tokenId),
  column('token_scope', 'uuid', token => token.tokenScope),
  column('status', 'text', () => 'ACTIVE'),
  column('suspended_reason', 'text', () => null),
  column('token_type', 'text', () => 'REUSE'),
  column('fingerprint', 'bytea', token => binary(token.fingerprint), false),
  column('sealed', 'bytea', token => binary(token.sealed), false),
  column('seal_version', 'smallint', () => 1),
  column('bin', 'text', token => token.bin),
  column('last_four', 'text', token => token.lastFour),
  column('expiry_month', 'smallint', () => 12),
  column('expiry_year', 'smallint', () => 2030),
  column('card_holder_name', 'text', () => 'ANNA MEYER', false),
  column('card_holder_email', 'text', () => null, false),
  column('card_sequence', 'text', () => null, false),
  column('start_month', 'smallint', () => null),
  column('start_year', 'smallint', () => null),
  column('brand', 'text', token => token.brand),
  column('card_brand', 'text', () => null),
  column('bin_range', 'integer', () => null),
  column('analytics_token', 'text', () => null),
  column('third_party_type', 'text', () => null),
  column('third_party_token', 'text', () => null, false),
  column('token_expiry_date', 'date', () => null),
  column('created_at', 'timestamptz', token => timeText(token.createdAt), false),
  column('updated_at', 'timestamptz', token => timeText(token.createdAt), false),
  column('version', 'integer', () => 1),
  column('last_receipt', 'uuid', () => null),
  column('batch_no', 'bigint', () => null),
  column('batch_created', 'boolean', () => null),
  column('batch_line', 'integer', () => null),
  column('batch_lines', 'jsonb', () => null, false),
]
const NAMES = COLUMNS.map(({ name }) => name).join(', ')

const FIND = `select ${NAMES} from unnest($1::bytea[]) as wanted(card)
cross join lateral (select ${NAMES} from bare.token where fingerprint = wanted.card limit 1) as found`

export function openPool(url: string, connectionsMax: number): pg.Pool {
  return new pg.Pool({
    connectionString: url,
    max: connectionsMax,
    // Statements that don't need one another's answers are sent together.
    pipeline: true,
    options:
      '-c timezone=UTC -c enable_seqscan=off -c enable_hashjoin=off -c enable_mergejoin=off -c enable_bitmapscan=off -c jit=off',
  } as pg.PoolConfig)
}

export async function makeTable(pool: pg.Pool): Promise<void> {
  await pool.query(TABLE)
}

/** Looks the cards up, and inserts them in a transaction. Throws if one of them has a row already. */
export async function writeChunk(pool: pg.Pool, made: readonly BareToken[]): Promise<void> {
  const fingerprints = made.map(({ fingerprint }) => `"\\\\x${fingerprint.toString('hex')}"`)
  const found = await pool.query({ name: 'tokens-by-card', text: FIND, values: [`{${fingerprints.join(',')}}`] })
  const sorted = made.toSorted((a, b) => Buffer.compare(a.fingerprint, b.fingerprint))
  const { shape, source, values } = rowSet(sorted)
  const client = await pool.connect()
  try {
    const begun = client.query('begin')
    begun.catch(() => {})
    const { rowCount } = await client.query({
      name: `tokens-insert-${shape}`,
      text: `insert into bare.token (${NAMES}) select ${NAMES} from ${source}
on conflict on constraint one_live_token_per_card do nothing`,
      values,
    })
    await begun
    await client.query('commit')
    if (found.rows.length > 0 || rowCount !== made.length) throw new Error('a card of the bare loop has a row already')
  } finally {
    client.release()
  }
}

/** The rows as a derived table; a column with the same value in every row is sent once. */
function rowSet(rows: readonly BareToken[]): { shape: string; source: string; values: (string | null)[] } {
  const values: (string | null)[] = []
  const arrays: string[] = []
  const names: string[] = []
  const select: string[] = []
  let shape = ''
  for (const [index, { name, type, text, isPlain }] of COLUMNS.entries()) {
    const { literal, isSame, first } = literalOf(text, isPlain, rows)
    const isOnce = isSame && index > 0
    values.push(isOnce ? first : literal)
    shape += isOnce ? '1' : 'n'
    if (isOnce) select.push(`$${index + 1}::${type}`)
    else {
      arrays.push(`$${index + 1}::${type}[]`)
      names.push(name)
      select.push(`a.${name}`)
    }
  }
  return {
    shape,
    values,
    source: `(select ${select.join(', ')} from unnest(${arrays.join(', ')}) as a(${names.join(', ')})) as v(${NAMES})`,
  }
}

function literalOf(
  text: Column['text'],
  isPlain: boolean,
  rows: readonly BareToken[],
): { literal: string; isSame: boolean; first: string | null } {
  const start = rows[0] === undefined ? null : text(rows[0])
  const first = start === null ? null : String(start)
  let literal = '{'
  let isSame = true
  for (const row of rows) {
    const value = text(row)
    if (value !== start) isSame = false
    if (literal.length > 1) literal += ','
    if (value === null) literal += 'NULL'
    else literal += isPlain ? value : quoted(String(value))
  }
  return { literal: `${literal}}`, isSame, first }
}

function quoted(value: string): string {
  return `"${value.includes('"') || value.includes('\\') ? value.replace(/["\\]/g, '\\$&') : value}"`
}
