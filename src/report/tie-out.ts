// Adds up the lines of a report while they go into the file, and compares the sums with the store's. So there are two
// independent sums: this one, line by line, and the store's aggregates over the same snapshot. The first difference
// ends the report. File formats are unknown here.
import { openAllocation } from './allocate.ts'
import { type Column, type Definition, hasMoney, isSummed, type Plan, type Row } from './definition.ts'
import { decimal } from './money.ts'

/** Sums by column, in minor units or counts. */
export type Sums = Record<string, bigint>

export interface Total {
  /** Undefined if the report has no money. */
  currency: string | undefined
  lines: bigint
  sums: Sums
}

interface Group {
  /** The values of the columns by which the lines are grouped. */
  row: Row
  lines: bigint
  sums: Sums
}

/**
 * A report's rows, read in one snapshot of the store. Rows of group sums and totals hold their number of lines as
 * `lines`.
 */
export interface Source {
  totals: readonly Row[]
  groups: AsyncIterable<readonly Row[]>
  lines: AsyncIterable<readonly Row[]>
}

/** The entries of the file, in order: lines, the sums of a group after its last line, the totals at the end. */
export type Entry = { kind: 'line'; row: Row } | { kind: 'group'; group: Group } | { kind: 'total'; total: Total }

/** The report doesn't add up, or can't be written. The message says where; it holds no card data. */
export class Mismatch extends Error {
  override name = 'Mismatch'
}

/** The totals of the store's rows, one per currency. */
export function totalsOf(definition: Definition, rows: readonly Row[]): Total[] {
  const money = hasMoney(definition)
  return rows.map(row => {
    const currency = money ? (row['currency'] ?? '') : undefined
    if (currency !== undefined && decimal(0n, currency) === undefined)
      throw new Mismatch(`unknown currency ${currency}`)
    return { currency, lines: whole(row, 'lines'), sums: sumsOf(definition, row) }
  })
}

/** Throws `Mismatch` at the first difference; the caller discards what was yielded before. */
export async function* tieOut(
  definition: Definition,
  { shares }: Pick<Plan, 'shares'>,
  source: Source,
): AsyncGenerator<Entry[], void, void> {
  const summed = definition.columns.filter(isSummed)
  const stated = totalsOf(definition, source.totals)
  const groups = rowByRow(source.groups)
  const check = lineCheck(definition, shares)
  const counted = new Map<string, Total>()
  let open: Group | undefined

  async function close(group: Group): Promise<Entry> {
    const { value: row } = await groups.next()
    if (!row) throw new Mismatch(`${nameOf(group)}: the store has no sums of it`)
    const differs = definition.group.find(name => row[name] !== group.row[name])
    if (differs !== undefined) throw new Mismatch(`${nameOf(group)}: the store's next sums are of another group`)
    const told = { lines: whole(row, 'lines'), sums: sumsOf(definition, row) }
    expectSame(nameOf(group), group, told, summed)
    const total = totalOf(counted, keyOf(definition, group.row), summed)
    // The lines were just compared with the store's sums of the group. Those sums are added up here and compared with
    // the store's totals at the end.
    add(total, told)
    return { kind: 'group', group }
  }

  for await (const rows of source.lines) {
    const entries: Entry[] = []
    for (const row of rows) {
      if (open && definition.group.some(name => row[name] !== open?.row[name])) {
        entries.push(await close(open))
        open = undefined
      }
      open ??= { row: pick(row, definition.group), lines: 0n, sums: zero(summed) }
      const sums = check(row)
      add(open, { lines: 1n, sums })
      entries.push({ kind: 'line', row })
    }
    yield entries
  }
  const last: Entry[] = open ? [await close(open)] : []
  if (!(await groups.next()).done) throw new Mismatch('the store has sums of a group without lines')
  for (const total of stated) {
    const name = total.currency ?? 'report'
    expectSame(`total ${name}`, totalOf(counted, total.currency ?? '', summed), total, summed)
    expectRules(`total ${name}`, definition, total.sums)
    last.push({ kind: 'total', total })
  }
  if (counted.size !== stated.length) throw new Mismatch('the store has no total of a currency that has lines')
  yield last
}

/** Makes a function that checks the identities of one line and returns the line's sums. */
function lineCheck(definition: Definition, shares: Plan['shares']): (row: Row) => Sums {
  const summed = definition.columns.filter(isSummed)
  const allocations = new Map<string, ReturnType<typeof openAllocation>>()
  return row => {
    const sums: Sums = {}
    for (const { name } of summed) sums[name] = whole(row, name)
    expectRules('line', definition, sums)
    for (const { result, of, percent } of shares) {
      const key = `${result} ${row['currency']}`
      const allocation = allocations.get(key) ?? openAllocation(percent)
      allocations.set(key, allocation)
      if (allocation.next(sums[of] ?? 0n) !== sums[result])
        throw new Mismatch(`line of ${row['currency']}: ${result} is not its share of ${of}`)
    }
    return sums
  }
}

function expectRules(where: string, { rules }: Definition, sums: Sums): void {
  for (const { result, plus, minus } of rules) {
    let left = 0n
    for (const name of plus) left += sums[name] ?? 0n
    for (const name of minus) left -= sums[name] ?? 0n
    if (left !== sums[result])
      throw new Mismatch(`${where}: ${result} is not ${plus.join(' + ')}${minus.map(name => ` - ${name}`).join('')}`)
  }
}

type Counted = Pick<Total, 'lines' | 'sums'>

function expectSame(where: string, read: Counted, stated: Counted, summed: readonly Column[]): void {
  if (read.lines !== stated.lines)
    throw new Mismatch(`${where}: ${read.lines} lines were read, the store counts ${stated.lines}`)
  for (const { name } of summed)
    if (read.sums[name] !== stated.sums[name])
      throw new Mismatch(
        `${where}: ${name} of the lines is ${read.sums[name]}, the store's sum is ${stated.sums[name]}`,
      )
}

function add(onto: Counted, { lines, sums }: Counted): void {
  onto.lines += lines
  for (const name in onto.sums) onto.sums[name] = (onto.sums[name] ?? 0n) + (sums[name] ?? 0n)
}

function totalOf(counted: Map<string, Total>, key: string, summed: readonly Column[]): Total {
  const total = counted.get(key) ?? { currency: key || undefined, lines: 0n, sums: zero(summed) }
  counted.set(key, total)
  return total
}

const keyOf = (definition: Definition, row: Row): string => (hasMoney(definition) ? (row['currency'] ?? '') : '')
const zero = (summed: readonly Column[]): Sums => Object.fromEntries(summed.map(({ name }) => [name, 0n]))
const pick = (row: Row, names: readonly string[]): Row =>
  Object.fromEntries(names.map(name => [name, row[name] ?? null]))
const nameOf = ({ row }: Group): string =>
  `group ${Object.values(row)
    .map(value => value ?? '-')
    .join(', ')}`

function sumsOf({ columns }: Definition, row: Row): Sums {
  return Object.fromEntries(columns.filter(isSummed).map(({ name }) => [name, whole(row, name)]))
}

function whole(row: Row, name: string): bigint {
  const text = row[name]
  if (text === null || text === undefined || !/^-?\d+$/.test(text)) throw new Mismatch(`${name} is not a whole number`)
  return BigInt(text)
}

async function* rowByRow(pages: AsyncIterable<readonly Row[]>): AsyncGenerator<Row, undefined, void> {
  for await (const rows of pages) yield* rows
  return undefined
}
