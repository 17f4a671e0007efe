// Reads and replaces sealed bytes in any column of sealed-columns.ts. The other columns of these tables are written by other
// files: this one changes the sealed bytes, their key's version and what sealed-columns.ts names, and nothing else.
import { byteas, plains, texts } from '../columns.ts'
import { type Db, limitStatements } from '../pool.ts'
import { hashedColumnsOf } from './hashed-columns.ts'
import {
  BEFORE_IMAGE_VERSIONS,
  SEALED_COLUMNS,
  type SealedColumn,
  type SealedName,
  sealedNamesOf,
} from './sealed-columns.ts'

/** The most rows of one set. */
export const SET_ROWS = 500
/** The most rows that one statement reads to find a set. */
const PAGE_ROWS = 10_000

export interface SealedRow {
  key: string
  sealed: Buffer
  /** Null for a private half that a key-encryption key wraps. */
  version: number | null
  facts: Readonly<Record<string, string | null>>
}

export interface SealedSet {
  /** Rows that name another version, in the order of their keys. */
  rows: SealedRow[]
  /** How many rows were looked at. */
  scanned: number
  /** The last key that was looked at; null if there was none. */
  last: string | null
  /** Whether the column has no further rows. */
  isEnd: boolean
}

type Row = Omit<SealedRow, 'facts'> & {
  /** In the order of the column's `facts`. */
  facts: (string | null)[]
  place: number
}

/**
 * The next rows after the key `after` (empty: from the beginning) that aren't sealed under `version`. They are sorted by
 * the key, the order in which they are read: to sort them by `place`, PostgreSQL would read the whole page for each set.
 */
export async function findSet(
  db: Db,
  name: SealedName,
  { after, version }: { after: string; version: number },
): Promise<SealedSet> {
  const column: SealedColumn = SEALED_COLUMNS[name]
  const { key, sealed, facts, table } = column
  const start = after || lowest(column)
  const { rows } = await db.query<Row>({
    name: `reseal-find-${name}`,
    text: `select
  row_key as key,
  row_sealed as sealed,
  row_version as version,
  row_facts as facts,
  place
from (
  select
    ${key} as at,
    ${key}::text as row_key,
    ${sealed} as row_sealed,
    ${column.version} as row_version,
    ${arrayOf(facts)} as row_facts,
    row_number() over (order by ${key}) as place
  from tokenmill.${table}
  where ${key} > $1
  order by ${key}
  limit ${PAGE_ROWS}
) as page
where row_sealed is not null and row_version is distinct from $2
order by at
limit ${SET_ROWS}`,
    values: [start, version],
  })
  const found = rows.map(row => ({
    ...row,
    facts: Object.fromEntries(facts.map((fact, index) => [fact, row.facts[index] ?? null])),
  }))
  const last = rows.at(-1)
  if (last && rows.length === SET_ROWS) return { rows: found, scanned: last.place, last: last.key, isEnd: false }
  return { rows: found, ...(await findPageEnd(db, name, start)) }
}

async function findPageEnd(db: Db, name: SealedName, start: string): Promise<Omit<SealedSet, 'rows'>> {
  const { key, table } = SEALED_COLUMNS[name]
  const { rows } = await db.query<{ key: string; place: number }>({
    name: `reseal-page-end-${name}`,
    text: `select row_key as key, place
from (
  select ${key}::text as row_key, row_number() over (order by ${key}) as place
  from tokenmill.${table}
  where ${key} > $1
  order by ${key}
  limit ${PAGE_ROWS}
) as page
order by place desc
limit 1`,
    values: [start],
  })
  const [last] = rows
  const scanned = last?.place ?? 0
  return { scanned, last: last?.key ?? null, isEnd: scanned < PAGE_ROWS }
}

export interface Resealed extends Pick<SealedRow, 'key'> {
  former: Buffer
  fresh: Buffer
}

/**
 * Replaces the bytes that were read by bytes that `version` has sealed. Leaves out rows whose bytes have changed since,
 * rows that another transaction has locked, and rows that aren't `free`. Returns how many were replaced.
 */
export async function replaceSet(
  db: Db,
  name: SealedName,
  { rows, version }: { rows: readonly Resealed[]; version: number },
): Promise<number> {
  if (rows.length === 0) return 0
  const column: SealedColumn = SEALED_COLUMNS[name]
  const { table, key, keyType, sealed, also, free } = column
  const keys = rows.map(row => row.key)
  const { count } = await db.query({
    name: `reseal-replace-${name}`,
    text: `update tokenmill.${table} as t
set ${sealed} = v.fresh, ${column.version} = $4${also ? `, ${also}` : ''}
from (
  select given.id, given.former, given.fresh
  from unnest($1::${keyType}[], $2::bytea[], $3::bytea[]) as given(id, former, fresh)
  cross join lateral (
    select
    from tokenmill.${table} as h
    where h.${key} = given.id and h.${sealed} = given.former ${free ? `and ${free}` : ''}
    limit 1
    for no key update skip locked
  ) as held
) as v
where t.${key} = v.id and t.${sealed} = v.former`,
    values: [
      keyType === 'uuid' ? plains(keys) : texts(keys),
      byteas(rows.map(({ former }) => former)),
      byteas(rows.map(({ fresh }) => fresh)),
      version,
    ],
  })
  return count
}

/** About how many rows a pass looks at; undefined if PostgreSQL has no statistics of these tables yet. */
export async function estimateRows(db: Db, purpose: string): Promise<number | undefined> {
  const tables = sealedNamesOf(purpose).map(name => `tokenmill.${SEALED_COLUMNS[name].table}`)
  const { rows } = await db.query<{ rows: number | null }>({
    text: `select sum(greatest(c.reltuples, 0))::bigint as rows
from unnest($1::text[]) as wanted(name)
join pg_class as c on c.oid = wanted.name::regclass`,
    values: [texts(tables)],
  })
  return rows[0]?.rows || undefined
}

export interface UnderKey {
  /** `table.column`. */
  column: string
  rows: number
}

const COUNT_MS_MAX = 4 * 3_600_000

/**
 * How many rows of each column name this version of a purpose's key; columns without such a row are left out. It reads whole
 * tables, and changes the limits of the transaction in which it is called.
 */
export async function countUnder(db: Db, purpose: string, version: number): Promise<UnderKey[]> {
  const places = sealedNamesOf(purpose).map(name => ({ column: name as string, ...SEALED_COLUMNS[name] }))
  const imageVersion = BEFORE_IMAGE_VERSIONS[purpose]
  const hashed = hashedColumnsOf(purpose) ?? []
  const all = [
    ...places.map(({ column, table, version: names }) => ({ column, table, names, where: 'true' })),
    ...hashed.map(one => ({ ...one, column: `${one.table}.${one.column}`, names: one.version })),
    ...(imageVersion
      ? [{ column: 'before_image.sealed', table: 'before_image', names: imageVersion, where: 'true' }]
      : []),
  ]
  await limitStatements(db, COUNT_MS_MAX)
  await db.query({ text: 'set local enable_seqscan = on' })
  const counted: UnderKey[] = []
  for (const { column, table, names, where } of all) {
    const { rows } = await db.query<{ rows: number }>({
      text: `select count(*) as rows
from tokenmill.${table}
where ${names} = $1 and ${where}`,
      values: [version],
    })
    const count = rows[0]?.rows ?? 0
    if (count > 0) counted.push({ column, rows: count })
  }
  return counted
}

/** A value that is lower than every key of the column. */
function lowest({ keyType }: SealedColumn): string {
  return keyType === 'uuid' ? '00000000-0000-0000-0000-000000000000' : ''
}

function arrayOf(names: readonly string[]): string {
  return names.length === 0 ? `'{}'::text[]` : `array[${names.map(name => `${name}::text`).join(', ')}]`
}
