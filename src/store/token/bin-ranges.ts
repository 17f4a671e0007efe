// The BIN table that an operator imported. A range keeps its id for ever, because tokens refer to it; the issuer's data
// may change.
import type { BinRange } from '../../token/bin.ts'
import { type Column, rowSet } from '../columns.ts'
import type { Db } from '../pool.ts'

type NewBinRange = Omit<BinRange, 'id'>

const column = (name: string, text: Column<NewBinRange>['text'], plain = false): Column<NewBinRange> => ({
  name,
  type: 'text',
  text,
  plain,
})

const COLUMNS: readonly Column<NewBinRange>[] = [
  column('prefix', range => range.prefix, true),
  column('brand', range => range.brand),
  column('issuer_name', range => range.issuerName ?? null),
  column('issuer_country', range => range.issuerCountry ?? null, true),
  column('type', range => range.type ?? null, true),
  column('variant', range => range.variant ?? null),
  column('currency', range => range.currency ?? null, true),
]
const NAMES = COLUMNS.map(({ name }) => name).join(', ')

export async function findAll(db: Db): Promise<BinRange[]> {
  const { rows } = await db.query<BinRange>({
    text: `select
  id,
  prefix,
  brand,
  issuer_name as "issuerName",
  issuer_country as "issuerCountry",
  type,
  variant,
  currency
from tokenmill.bin_range
order by prefix`,
  })
  // A range has no member for what isn't known.
  const known = (range: BinRange) => Object.entries(range).filter(([, value]) => value !== null)
  return rows.map(range => Object.fromEntries(known(range)) as unknown as BinRange)
}

const CHANGED = COLUMNS.filter(({ name }) => name !== 'prefix').map(({ name }) => name)
const ON_CONFLICT = `on conflict on constraint bin_prefix_stands_once do update
set ${CHANGED.map(name => `${name} = excluded.${name}`).join(', ')}
where (${CHANGED.map(name => `old.${name}`).join(', ')}) is distinct from (${CHANGED.map(name => `excluded.${name}`).join(', ')})`

/**
 * Adds new prefixes and updates known ones. No prefix may occur twice in `ranges`. Returns how many rows were written.
 */
export async function saveAll(db: Db, ranges: readonly NewBinRange[]): Promise<number> {
  if (ranges.length === 0) return 0
  const { source, values } = rowSet(COLUMNS, ranges)
  const text = `insert into tokenmill.bin_range as old (${NAMES})
select ${NAMES}
from ${source}
${ON_CONFLICT}`
  const { count } = await db.query({ text, values })
  return count
}
