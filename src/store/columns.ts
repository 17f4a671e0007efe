// Sets of rows as parameters of one statement. The driver's way of sending arrays (escape every element) takes longer
// than the statement, so the literals are built here. A column with the same value in every row is sent once.

export interface Column<Row> {
  name: string
  type: string
  /** The value's text, or null. */
  text: (row: Row) => string | number | null
  /** Its texts hold nothing that an array literal must quote. */
  plain: boolean
}

interface RowSet {
  /** The columns that are sent once: part of the statement's name, because the text depends on them. */
  shape: string
  /** `(select …) as v(names)`, with parameters from $1 on. */
  source: string
  values: (string | null)[]
}

/** `rows` (at least one) as a derived table. */
export function rowSet<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): RowSet {
  const values: (string | null)[] = []
  const arrays: string[] = []
  const names: string[] = []
  const select: string[] = []
  let shape = ''
  for (const [index, column] of columns.entries()) {
    const { literal, same, first } = literalOf(column, rows)
    // Of several rows one column at least must be an array, to say how many there are. One row needs none, and PostgreSQL
    // keeps the plan of a statement without arrays: the length of an array makes it plan anew each time.
    const once = same && (index > 0 || rows.length === 1)
    values.push(once ? first : literal)
    shape += once ? '1' : 'n'
    if (once) select.push(`$${index + 1}::${column.type}`)
    else {
      arrays.push(`$${index + 1}::${column.type}[]`)
      names.push(column.name)
      select.push(`a.${column.name}`)
    }
  }
  const all = columns.map(({ name }) => name).join(', ')
  const from = arrays.length === 0 ? '' : ` from unnest(${arrays.join(', ')}) as a(${names.join(', ')})`
  return {
    shape,
    values,
    source: `(select ${select.join(', ')}${from}) as v(${all})`,
  }
}

function literalOf<Row>(
  { text, plain }: Column<Row>,
  rows: readonly Row[],
): { literal: string; same: boolean; first: string | null } {
  const start = rows[0] === undefined ? null : text(rows[0])
  const first = start === null ? null : String(start)
  let literal = '{'
  let same = true
  for (const row of rows) {
    const value = text(row)
    if (value !== start) same = false
    if (literal.length > 1) literal += ','
    if (value === null) literal += 'NULL'
    else literal += plain ? value : quoted(String(value))
  }
  return { literal: `${literal}}`, same, first }
}

/** A text array's literal. */
export function texts(values: readonly (string | null)[]): string {
  return `{${values.map(value => (value === null ? 'NULL' : quoted(value))).join(',')}}`
}

/** The literal of an array whose elements hold nothing that needs quoting: numbers, UUIDs. */
export function plains(values: readonly (string | number | null)[]): string {
  return `{${values.map(value => value ?? 'NULL').join(',')}}`
}

/**
 * The array of parameter `$n`, of a length that the planner doesn't see. Where it does, a statement for a few rows is
 * planned anew each time, which takes longer than a look-up. Only for look-ups whose one good plan is by index.
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
