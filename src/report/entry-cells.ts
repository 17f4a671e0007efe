// Turns one entry of a report into cells, the same for CSV and plain text: the kind of record, and the cell of each
// column. The format then quotes or pads the cells.
import { type Column, type Definition, isSummed, type Row } from './definition.ts'
import { decimal } from './money.ts'
import { type Entry, Mismatch, type Sums } from './tie-out.ts'

const RECORD = { line: 'LINE', group: 'GROUP', total: 'TOTAL' } as const

/** The cells of `columns`, in order. The number of lines of a group or total is apart, in `lines`. */
interface EntryCells {
  record: (typeof RECORD)[keyof typeof RECORD]
  cells: string[]
  /** The number of lines of a group or total; empty for a line. */
  lines: string
}

export function cellsOf(entry: Entry, { columns }: Pick<Definition, 'columns'>): EntryCells {
  switch (entry.kind) {
    case 'line':
      return { record: RECORD.line, cells: columns.map(column => lineCell(column, entry.row)), lines: '' }
    case 'group': {
      const { row, lines, sums } = entry.group
      return { record: RECORD.group, cells: columns.map(column => sumCell(column, row, sums)), lines: `${lines}` }
    }
    case 'total': {
      const { currency = null, lines, sums } = entry.total
      return {
        record: RECORD.total,
        cells: columns.map(column => sumCell(column, { currency }, sums)),
        lines: `${lines}`,
      }
    }
  }
}

function lineCell({ name, type }: Column, row: Row): string {
  const value = row[name] ?? ''
  return type === 'money' ? amountOf(BigInt(value), row) : value
}

function sumCell(column: Column, row: Row, sums: Sums): string {
  if (!isSummed(column)) return row[column.name] ?? ''
  const sum = sums[column.name] ?? 0n
  return column.type === 'money' ? amountOf(sum, row) : `${sum}`
}

export function amountOf(minor: bigint, { currency }: Row): string {
  const amount = decimal(minor, currency ?? '')
  if (amount === undefined) throw new Mismatch(`unknown currency ${currency}`)
  return amount
}
