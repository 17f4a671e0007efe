// Passes sets of rows as parameters of one statement. The driver escapes every element of an array, which takes longer
// than the statement itself, so the array literals are built here. In a set of more than 64 rows a column with the same
// value in every row is sent as one value, except the first column.

export interface ColumnType {
  name: string
  type: string
  /** What the value is cast to, if it can't be an element of an array parameter (an array of arrays has no rows). */
  as?: string
  /** The texts hold no character that an array literal must quote. */
  plain: boolean
  /** Makes the array in its binary form (binary.ts) of the texts, if the server reads that faster. */
  array?: ((texts: readonly (string | null)[]) => Buffer) | undefined
}

export interface Column<Row> extends ColumnType {
  /** The value's text, or null. */
  text: (row: Row) => string | number | null
}

/** The values of a column; one value if they are all the same; or the array of all values in its binary form. */
export type Cells = readonly (string | number | null)[] | Buffer

interface RowSet {
  /**
   * Which columns are sent as one value. It is part of the prepared statement's name, because the statement's text
   * depends on it.
   */
  shape: string
  /** `(select …) as v(names)`, with parameters from $1 on. */
  source: string
  /** `select …` of the same rows, for an insert: the server keeps no copy of them, as it does for `source`. */
  rows: string
  values: (string | Buffer | null)[]
}

/** Up to this number the rows may be those of single jobs in a set, or of the end of a file. */
const FEW = 64

/** Makes a derived table of `rows`, of which there must be at least one. */
export function rowSet<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): RowSet {
  return cellSet(
    columns,
    columns.map(({ text }) => rows.map(text)),
    rows.length,
  )
}

/** Makes a derived table of the cells of columns. `count`: the number of rows, at least one. */
export function cellSet(columns: readonly ColumnType[], cells: readonly Cells[], count: number): RowSet {
  const values: (string | Buffer | null)[] = []
  const arrays: string[] = []
  const names: string[] = []
  const select: string[] = []
  const apart: string[] = []
  const shape = shapeOf(columns, cells, count)
  for (const [index, column] of columns.entries()) {
    const given = cells[index] ?? []
    const once = shape[index] === '1'
    if (Buffer.isBuffer(given)) values.push(given)
    else if (once) values.push(textOf(given[0] ?? null))
    else values.push(arrayOf(column, whole(given, count)))
    const cast = column.as === undefined ? '' : `::${column.as}`
    const one = `$${index + 1}::${column.type}${cast}`
    if (once) select.push(one)
    else {
      arrays.push(`$${index + 1}::${column.type}[]`)
      names.push(column.name)
      select.push(`a.${column.name}${cast}`)
    }
    apart.push(once ? one : `unnest($${index + 1}::${column.type}[])${cast}`)
  }
  const all = columns.map(({ name }) => name).join(', ')
  const from = arrays.length === 0 ? '' : ` from unnest(${arrays.join(', ')}) as a(${names.join(', ')})`
  return {
    shape,
    values,
    source: `(select ${select.join(', ')}${from}) as v(${all})`,
    rows: `select ${apart.join(', ')}`,
  }
}

type Values = readonly (string | number | null)[]

/** The shapes that were used, by columns. */
const shapes = new WeakMap<readonly ColumnType[], Set<string>>()
/** Each connection keeps each statement that it has prepared. */
const SHAPES_MAX = 64

function shapeOf(columns: readonly ColumnType[], cells: readonly Cells[], count: number): string {
  // With several rows the first column is always an array, so that the number of rows is known. A single row needs no
  // array, and PostgreSQL reuses the plan of a statement without arrays; with an array it may plan anew each time.
  // Which columns of a few rows are the same is chance: each mix would be a statement of its own to prepare.
  const mayBeOnce = (index: number) => count === 1 || (index > 0 && count > FEW)
  const isOnce = (given: Cells) => !Buffer.isBuffer(given) && isSame(given)
  const shape = columns.map((_, index) => (mayBeOnce(index) && isOnce(cells[index] ?? []) ? '1' : 'n')).join('')
  const used = shapes.get(columns) ?? new Set()
  shapes.set(columns, used)
  if (used.size < SHAPES_MAX || used.has(shape)) {
    used.add(shape)
    return shape
  }
  return 'n'.repeat(columns.length)
}

function isSame(values: Values): boolean {
  const [first] = values
  return values.every(value => value === first)
}

const textOf = (value: string | number | null) => (value === null ? null : String(value))

/** All values of a column that may be given as one. */
export function whole<Value>(values: readonly Value[], count: number): readonly Value[] {
  return values.length === count ? values : new Array<Value>(count).fill(values[0] as Value)
}

function arrayOf({ array, plain }: ColumnType, cells: Values): string | Buffer {
  if (array) return array(cells as readonly (string | null)[])
  return plain ? plains(cells) : texts(cells)
}

/** The literal of a text array. */
export function texts(values: readonly (string | number | null)[]): string {
  return `{${values.map(value => (value === null ? 'NULL' : quoted(String(value)))).join(',')}}`
}

/** What a statement selects of these columns: each under the name of its member. */
export function asMembers(columns: readonly string[]): string {
  const memberOf = (name: string) => name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
  return columns.map(name => `\n  ${name} as "${memberOf(name)}"`).join(',')
}

/** The literal of an array whose elements hold nothing that needs quoting: numbers, UUIDs. */
export function plains(values: readonly (string | number | null)[]): string {
  return `{${values.map(value => value ?? 'NULL').join(',')}}`
}

/**
 * An array parameter `$n` whose length the planner doesn't see. If it saw the length, it would plan a statement for a
 * few rows anew each time, which takes longer than the look-up. Use it only if the one good plan is a look-up by index.
 */
export function listOf(n: number, type: string): string {
  return `(select $${n}::${type}[])`
}

/** The literal of a bytea array. */
export function byteas(values: readonly Buffer[]): string {
  return `{${values.map(value => `"\\\\x${value.toString('hex')}"`).join(',')}}`
}

function quoted(value: string): string {
  return `"${value.includes('"') || value.includes('\\') ? value.replace(/["\\]/g, '\\$&') : value}"`
}
