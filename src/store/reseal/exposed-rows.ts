// Lists what one version of a data key exposed: the rows that name the version, page by page. It only reads.
import type { Db } from '../pool.ts'
import { type ColumnType, hashedColumnsOf, type Order } from './hashed-columns.ts'
import { BEFORE_IMAGE, BEFORE_IMAGE_VERSIONS, SEALED_COLUMNS, sealedNamesOf } from './sealed-columns.ts'

export interface ExposedPlace {
  /** `table.column`. */
  column: string
  table: string
  /** The column that identifies the row. */
  key: string
  keyType: ColumnType
  /** The columns of an index in whose order the rows are read; no two rows have all values in common. Default: `key`. */
  order?: Order
  /** Which rows the version exposed; `$1` is the version. */
  where: string
}

/** Every place whose rows somebody with one version of the purpose's key can open, or test guessed values against. */
export function exposedPlaces(purpose: string): ExposedPlace[] {
  const images = BEFORE_IMAGE_VERSIONS[purpose]
  return [
    ...sealedNamesOf(purpose).map(name => {
      const { table, key, keyType, sealed, version } = SEALED_COLUMNS[name]
      return { column: name, table, key, keyType, where: `${sealed} is not null and ${version} = $1` }
    }),
    ...(hashedColumnsOf(purpose) ?? []).map(({ table, column, key, keyType, order, version, where }) => {
      const name = `${table}.${column}`
      return { column: name, table, key, keyType, ...(order && { order }), where: `${version} = $1 and ${where}` }
    }),
    ...(images === undefined
      ? []
      : [{ ...IMAGE, column: `${BEFORE_IMAGE.table}.${BEFORE_IMAGE.sealed}`, where: `${images} = $1` }]),
    ...(UNVERSIONED[purpose] ?? []),
  ]
}

const by = (column: string): Order => [{ column, type: 'uuid' }]

/** A token may have several copies, so they are read by their own key: a page could end between two copies of a token. */
const IMAGE = { table: BEFORE_IMAGE.table, key: BEFORE_IMAGE.key, keyType: 'uuid', order: by('receipt_id') } as const

const token = (column: string) => ({
  column: `token.${column}`,
  table: 'token',
  key: 'token_id',
  keyType: 'uuid' as const,
  where: `${column} is not null and $1::int is not null`,
})

/** Columns that are neither sealed nor in `HASHED_COLUMNS`. If a value names no version, it may be of any version. */
const UNVERSIONED: Readonly<Record<string, readonly ExposedPlace[]>> = {
  analytics: [token('analytics_token')],
  fingerprint: [
    { column: 'card.fp', table: 'card', key: 'token_id', keyType: 'uuid', order: by('fp'), where: 'version = $1' },
    {
      column: 'scheme_card.fp',
      table: 'scheme_card',
      key: 'provision_id',
      keyType: 'uuid' as const,
      order: by('fp'),
      where: 'version = $1',
    },
  ],
  audit: [
    {
      column: 'audit.mac',
      table: 'audit',
      key: 'audit_id',
      keyType: 'bigint' as const,
      where: 'key_version = $1',
    },
  ],
}

/** The most rows that one statement looks at, however few of them the version exposed. */
const PAGE_ROWS = 10_000
const FIRST = { uuid: '00000000-0000-0000-0000-000000000000', text: '', bigint: '-1', bytea: '' } as const

interface Page {
  keys: string[]
  /** Where the page ends: the values of `order`; null if it is empty. */
  last: string[] | null
  looked: number
}

/** The keys of the exposed rows, page by page, in the order of `order`. */
export async function* exposedKeys(
  db: Db,
  { table, key, keyType, order = [{ column: key, type: keyType }], where }: ExposedPlace,
  version: number,
  pageRows = PAGE_ROWS,
): AsyncGenerator<string[]> {
  const columns = order.map(({ column }) => column).join(', ')
  const start = order.map(({ type }, index) => `$${index + 2}::${type}`).join(', ')
  for (let after: string[] = order.map(({ type }) => FIRST[type]); ; ) {
    const { rows } = await db.query<Page>({
      text: `with page as materialized (
  select ${key}::text as row_key, ${where} as is_exposed, array[${order.map(({ column }) => `${column}::text`).join(', ')}] as place,
    row_number() over (order by ${columns}) as number
  from tokenmill.${table} where (${columns}) > (${start}) order by ${columns} limit ${pageRows}
) select array(select row_key from page where is_exposed order by number) as keys,
  (select place from page order by number desc limit 1) as last, (select count(*) from page) as looked`,
      values: [version, ...after],
    })
    const [page] = rows
    if (page && page.keys.length > 0) yield page.keys
    if (!page || page.last === null || page.looked < pageRows) return
    after = page.last
  }
}
