// The shapes of a statement that writes sets of rows: each is a statement that every connection prepares and keeps.
import { expect, it } from 'vitest'
import { type Column, rowSet } from '../../src/store/columns.ts'

const WIDTH = 10
const ROWS = 70
type Row = readonly string[]
const columns: readonly Column<Row>[] = Array.from({ length: WIDTH }, (_, at) => ({
  name: `c${at}`,
  type: 'text',
  plain: false,
  text: (row: Row) => row[at] ?? null,
}))

it('are few, however many mixes of equal columns come, and the rows are the same in any of them', () => {
  const shapes = new Set<string>()
  for (let mix = 0; mix < 2 ** WIDTH; mix += 1) {
    const rows = Array.from({ length: ROWS }, (_, row) =>
      columns.map((_, at) => ((mix >> at) & 1 ? 'same' : `${row} ${at}`)),
    )
    const { shape, values, source } = rowSet(columns, rows)
    shapes.add(shape)
    for (const [at, once] of [...shape].entries()) {
      expect(source).toContain(once === '1' ? `$${at + 1}::text` : `$${at + 1}::text[]`)
      expect(values[at]).toBe(once === '1' ? 'same' : `{${rows.map(row => `"${row[at]}"`).join(',')}}`)
    }
  }
  expect(shapes.size).toBe(64)
  const [first] = shapes
  expect(rowSet(columns, [['a'], ['a']]).shape).toBe('n'.repeat(WIDTH))
  expect(first).toBe('n'.repeat(WIDTH))
})
