// The columns that a file of transactions may have, and the column that each name in its header means. Amounts are
// either in major units (`amount`) or in minor units (`amount_minor`), never in both.
import { TRANSACTION_FIELDS } from '../../src/job/ledger/transaction.ts'
import { FileError } from '../rows/file-error.ts'
import type { ColumnMap } from '../rows/layout.ts'

const AMOUNTS = ['amount', 'fee', 'commission'] as const
export type AmountName = (typeof AMOUNTS)[number]
export type PlainName = Exclude<(typeof TRANSACTION_FIELDS)[number], AmountName>
export type ColumnName = PlainName | AmountName | `${AmountName}_minor`

const PLAIN = TRANSACTION_FIELDS.filter((name): name is PlainName => !(AMOUNTS as readonly string[]).includes(name))
const COLUMN_NAMES: readonly ColumnName[] = [...PLAIN, ...AMOUNTS.flatMap(name => [name, `${name}_minor` as const])]
/** The columns that every file needs. Without a column `fee` or `commission` these amounts are 0. */
const NEEDED = ['transaction_uid', 'entity_uid', 'type', 'currency', 'created_at'] as const

export interface ColumnOptions {
  map?: ColumnMap | undefined
  ignoreUnknown?: boolean | undefined
}

/** The position of each column among the cells of a row. */
export interface Layout {
  plain: readonly { name: PlainName; at: number }[]
  amounts: readonly { name: AmountName; minor: boolean; at: number }[]
  currencyAt: number
  uidAt: number
}

/**
 * The column that a name in a file's header means; null if the column is left out, undefined if the name is unknown.
 */
export function resolve(given: string, { map = {}, ignoreUnknown = false }: ColumnOptions) {
  const name = Object.hasOwn(map, given) ? map[given] : given
  if (name === null || (COLUMN_NAMES as readonly unknown[]).includes(name)) return name as ColumnName | null
  return ignoreUnknown && !Object.hasOwn(map, given) ? null : undefined
}

/** The layout of a file with this header. Throws a FileError that names everything that is wrong with the header. */
export function layoutOf(header: readonly string[], options: ColumnOptions): Layout {
  const at = new Map<ColumnName, number>()
  const wrong: string[] = []
  for (const [index, given] of header.entries()) {
    const column = resolve(given, options)
    if (column === undefined) wrong.push(`column ${index + 1} (${shown(given)}) is unknown`)
    else if (column !== null && at.has(column)) wrong.push(`${column} is there twice`)
    else if (column !== null) at.set(column, index)
  }
  for (const name of NEEDED) if (!at.has(name)) wrong.push(`${name} is missing`)
  if (!at.has('amount') && !at.has('amount_minor')) wrong.push('amount or amount_minor is missing')
  for (const name of AMOUNTS)
    if (at.has(name) && at.has(`${name}_minor`)) wrong.push(`${name} and ${name}_minor exclude one another`)
  if (wrong.length > 0) {
    const next = `Columns: ${COLUMN_NAMES.join(', ')}. Give others a name with --map FILE, or drop them with --ignore-unknown.`
    throw new FileError('usage', `The header cannot be used: ${wrong.slice(0, 10).join('; ')}.`, next)
  }
  return {
    plain: PLAIN.flatMap(name => (at.has(name) ? [{ name, at: at.get(name) ?? -1 }] : [])),
    amounts: AMOUNTS.flatMap(name => {
      const minor = at.has(`${name}_minor`)
      const found = at.get(minor ? `${name}_minor` : name)
      return found === undefined ? [] : [{ name, minor, at: found }]
    }),
    currencyAt: at.get('currency') ?? -1,
    uidAt: at.get('transaction_uid') ?? -1,
  }
}

/**
 * A header's name for a message, or a placeholder if it doesn't look like a name: the first row of a file without a
 * header is data.
 */
function shown(name: string): string {
  return /^[A-Za-z][A-Za-z _.-]{0,39}$/.test(name) ? `"${name}"` : 'not a name'
}
