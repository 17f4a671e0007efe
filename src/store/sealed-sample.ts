// A sample of what is sealed under the vault's data keys, for the drill on a restored backup. It reads some pages of each
// table, chosen at random, so a large table takes no longer. It opens nothing.
import type { Db } from './pool.ts'
import {
  BEFORE_IMAGE,
  SEALED_COLUMNS,
  SEALED_NAMES,
  type SealedName,
  type SealedPlace,
} from './reseal/sealed-columns.ts'

/** These private halves are few, and a key-encryption key may wrap them: the drill opens each as a key. */
const HALVES = ['capture_key.wrapped_private', 'signing_key.wrapped_private'] as const
type ColumnName = Exclude<SealedName, (typeof HALVES)[number]>
export type SampledName = ColumnName | 'before_image.sealed'

const isSampled = (name: SealedName): name is ColumnName => !HALVES.some(half => half === name)

export const SAMPLED_NAMES: readonly SampledName[] = [...SEALED_NAMES.filter(isSampled), 'before_image.sealed']

/** The columns that show a part of the sealed number: they must belong to it. */
const SHOWN: { [Name in SampledName]?: readonly string[] } = { 'token.sealed': ['bin', 'last_four'] }

export function sampledPlace(name: SampledName): SealedPlace {
  return name === 'before_image.sealed' ? BEFORE_IMAGE : SEALED_COLUMNS[name]
}

export interface SampledRow {
  key: string
  sealed: Buffer
  version: number
  facts: Record<string, string | null>
}

/** How many pages are read for one row of the sample, so that sparse columns and rare versions are met, too. */
const PAGES_PER_ROW = 4

/** At most `perVersion` rows of each version that the chosen pages hold. */
export async function sample(db: Db, name: SampledName, perVersion: number): Promise<SampledRow[]> {
  const { table, sealed, version } = sampledPlace(name)
  const { rows } = await db.query<SampledRow>({
    text: `select
  key,
  sealed,
  version,
  facts
from (
  select ${columnsOf(name)}, row_number() over (partition by ${version}) as place
  from tokenmill.${table} tablesample system (${await percent(db, table, perVersion * PAGES_PER_ROW)})
  where ${sealed} is not null
) as chosen
where place <= $1`,
    values: [perVersion],
  })
  return rows
}

/** At most `max` rows of one version, which the chosen pages may not have held. It may read the whole table. */
export async function sampleVersion(db: Db, name: SampledName, version: number, max: number): Promise<SampledRow[]> {
  const { table, sealed, version: names } = sampledPlace(name)
  const { rows } = await db.query<SampledRow>({
    text: `select ${columnsOf(name)}
from tokenmill.${table}
where ${names} = $1 and ${sealed} is not null
limit $2`,
    values: [version, max],
  })
  return rows
}

function columnsOf(name: SampledName): string {
  const { key, sealed, version, facts } = sampledPlace(name)
  const pairs = [...facts, ...(SHOWN[name] ?? [])].map(fact => `'${fact}', ${fact}`).join(', ')
  return `${key}::text as key, ${sealed} as sealed, ${version} as version, json_build_object(${pairs}) as facts`
}

/** The share of the table's pages that are read, in percent. The statistics of a restored backup may be missing. */
async function percent(db: Db, table: string, pagesMax: number): Promise<number> {
  const { rows } = await db.query<{ pages: number }>({
    text: `select pg_relation_size($1::regclass) / current_setting('block_size')::bigint as pages`,
    values: [`tokenmill.${table}`],
  })
  return Math.min(100, (100 * pagesMax) / Math.max(1, rows[0]?.pages ?? 1))
}
