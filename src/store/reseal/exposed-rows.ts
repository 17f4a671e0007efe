// Lists what one version of a data key exposed: the rows that name the version, page by page. It only reads.
import type { Db } from '../pool.ts'
import { hashedColumnsOf } from './hashed-columns.ts'
import { BEFORE_IMAGE, BEFORE_IMAGE_VERSIONS, SEALED_COLUMNS, sealedNamesOf } from './sealed-columns.ts'

export interface ExposedPlace {
  /** `table.column`. */
  column: string
  table: string
  /** The column that identifies the row. */
  key: string
  /** The column with an index in whose order the rows are read; it has each value once. Default: `key`. */
  order?: string
  /** The type of that column. */
  keyType: 'uuid' | 'text' | 'bigint'
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
    ...(hashedColumnsOf(purpose) ?? []).map(({ table, column, key, keyType, version, where }) => {
      return { column: `${table}.${column}`, table, key, keyType, where: `${version} = $1 and ${where}` }
    }),
    ...(images === undefined
      ? []
      : [{ ...IMAGE, column: `${BEFORE_IMAGE.table}.${BEFORE_IMAGE.sealed}`, where: `${images} = $1` }]),
    ...(UNVERSIONED[purpose] ?? []),
  ]
}

/** A token may have several copies, so they are read by their own key: a page could end between two copies of a token. */
const IMAGE = { table: BEFORE_IMAGE.table, key: BEFORE_IMAGE.key, order: 'receipt_id', keyType: 'uuid' } as const

const token = (column: string) => ({
  ...{ column: `token.${column}`, table: 'token', key: 'token_id', keyType: 'uuid' as const },
  where: `${column} is not null and $1::int is not null`,
})

/** The whole fingerprints of release 0.3, which had one version of the key. */
const whole = (table: string, key: string) => ({
  ...{ column: `${table}.fingerprint`, table, key, keyType: 'uuid' as const },
  where: 'fingerprint is not null and $1 = 1',
})

/** Columns that are neither sealed nor in `HASHED_COLUMNS`. If a value names no version, it may be of any version. */
const UNVERSIONED: Readonly<Record<string, readonly ExposedPlace[]>> = {
  analytics: [token('analytics_token')],
  fingerprint: [
    { column: 'card.fp', table: 'card', key: 'token_id', order: 'fp', keyType: 'uuid', where: 'version = $1' },
    {
      ...{ column: 'scheme_card.fp', table: 'scheme_card', key: 'provision_id', order: 'fp', keyType: 'uuid' as const },
      where: 'version = $1',
    },
    whole('token', 'token_id'),
    whole('scheme_token', 'provision_id'),
    // Fingerprints of releases before this one, which named no version.
    {
      ...{ column: 'authentication.fingerprint', table: 'authentication', key: 'authentication_id' },
      ...{ keyType: 'uuid' as const, where: 'fingerprint is not null and $1::int is not null' },
    },
  ],
  audit: [
    {
      ...{ column: 'audit.mac', table: 'audit', key: 'audit_id', keyType: 'bigint' as const },
      where: 'key_version = $1',
    },
  ],
}

const PAGE_ROWS = 10_000
const FIRST = { uuid: '00000000-0000-0000-0000-000000000000', text: '', bigint: '-1' } as const

/** The keys of the exposed rows, page by page, in the order of `order`. */
export async function* exposedKeys(
  db: Db,
  { table, key, order = key, keyType, where }: ExposedPlace,
  version: number,
): AsyncGenerator<string[]> {
  for (let after: string = FIRST[keyType]; ; ) {
    const { rows } = await db.query<{ row_key: string; place: string }>({
      text: `select ${key}::text as row_key, ${order}::text as place from tokenmill.${table}
where ${order} > $2::${keyType} and ${where} order by ${order} limit ${PAGE_ROWS}`,
      values: [version, after],
    })
    const last = rows.at(-1)
    if (last) yield rows.map(row => row.row_key)
    if (!last || rows.length < PAGE_ROWS) return
    after = last.place
  }
}
