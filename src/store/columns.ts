// Sets of rows as array parameters: one literal a column, built here because the driver's own way (escape every
// element) takes longer than the statement. A column of nothing but nulls is sent as null: unnest pads it.

export interface Column<Row> {
  name: string
  type: string
  /** `null`, or the value's text; `plain` types need no quoting. */
  text: (row: Row) => string | number | null
  plain: boolean
}

/** PostgreSQL's array literal for one column of `rows`, or null where every value is. */
export function arrayOf<Row>(column: Column<Row>, rows: readonly Row[]): string | null {
  let literal = '{'
  let empty = true
  for (const row of rows) {
    const value = column.text(row)
    if (literal.length > 1) literal += ','
    if (value === null) {
      literal += 'NULL'
      continue
    }
    empty = false
    literal += column.plain ? value : quoted(String(value))
  }
  return empty ? null : `${literal}}`
}

/** A text array's literal. */
export function texts(values: readonly (string | null)[]): string {
  return `{${values.map(value => (value === null ? 'NULL' : quoted(value))).join(',')}}`
}

/** The literal of an array whose elements hold nothing that needs quoting: numbers, UUIDs. */
export function plains(values: readonly (string | number | null)[]): string {
  return `{${values.map(value => value ?? 'NULL').join(',')}}`
}

/** The literal of a bytea array. */
export function byteas(values: readonly Buffer[]): string {
  return `{${values.map(bytes).join(',')}}`
}

export function bytes(value: Buffer): string {
  return `"\\\\x${value.toString('hex')}"`
}

function quoted(value: string): string {
  return `"${value.includes('"') || value.includes('\\') ? value.replace(/["\\]/g, '\\$&') : value}"`
}

/** `($1::uuid[], $2::text[], …)` from parameter `first` on. */
export function unnestOf<Row>(columns: readonly Column<Row>[], first = 1): string {
  return `unnest(${columns.map((column, n) => `$${n + first}::${column.type}[]`).join(', ')}) as v(${columns.map(column => column.name).join(', ')})`
}
