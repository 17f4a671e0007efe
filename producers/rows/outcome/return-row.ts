// The file that goes back to the provider, line by line, in the shape that a profile declares. It is exact: no cell is
// guarded against spreadsheets, for a program reads it. A cell that would show a card number is
// left empty, and so is one whose text was cut.
import { tookEffect } from '../../../src/job/outcome.ts'
import { isCut } from '../kept.ts'
import { type CardDetector, cardDetector } from '../pan-lookalikes.ts'
import type { ReturnColumn, ReturnShape, ReturnValue } from '../profile/return-shape.ts'
import type { Row } from '../record.ts'
import type { FileRow } from './result-row.ts'

type Cell = (row: FileRow, kept: (at: number) => string) => string

export interface ReturnWriter {
  header: string
  /** `rows`: the ends of the rows `given`, in the same order. `showsCard`: knows the cards of their whole chunk. */
  textOf(rows: readonly FileRow[], given: readonly Row[], showsCard?: CardDetector): string
}

/** `keptAt`: where, among the texts that a row keeps, those of the shape's columns with `from` begin. */
export function returnWriter(shape: ReturnShape, keptAt: number): ReturnWriter {
  const lineOf = lineWriter(shape)
  let next = keptAt
  const cells = shape.columns.map((column): Cell => {
    if (!('from' in column)) return cellMaker(column)
    const at = next++
    return (_, kept) => kept(at)
  })
  return {
    header: lineOf(shape.columns.map(({ name }) => name)),
    textOf(rows, given, showsCard = cardDetector(given)) {
      let text = ''
      for (const [index, row] of rows.entries()) {
        const own = given[index]
        if (own === undefined || (shape.rows === 'took_effect' && !tookEffect(row.outcome))) continue
        const kept = (at: number) => {
          const given = own.kept?.[at] ?? ''
          return isCut(given) || showsCard(given, own) ? '' : given
        }
        text += lineOf(cells.map(cell => cell(row, kept)))
      }
      return text
    },
  }
}

function lineWriter({ delimiter = ',', quotes }: ReturnShape): (cells: readonly string[]) => string {
  const needed = (cell: string) =>
    quotes === 'always' || cell.includes(delimiter) || cell.includes('"') || cell.includes('\n') || cell.includes('\r')
  const quoted = (cell: string) => (needed(cell) ? `"${cell.replaceAll('"', '""')}"` : cell)
  return cells => `${cells.map(quoted).join(delimiter)}\n`
}

function cellMaker(column: Exclude<ReturnColumn, { from: string }>): Cell {
  if ('constant' in column) return () => column.constant
  const { value, form = '', words = {} } = column
  if (value === 'expiry' || value === 'expiry_month' || value === 'expiry_year') return row => expiryOf(row, form)
  const texts = new Map(Object.entries(words))
  return (row: Ended) => {
    const text = row[value] ?? ''
    return texts.get(text) ?? text
  }
}

type PlainValue = Exclude<ReturnValue, 'expiry_month' | 'expiry_year' | 'expiry'>
type Ended = Partial<Record<PlainValue, string | undefined>> & {
  expiry_month?: number | undefined
  expiry_year?: number | undefined
}

/** By a form such as MM, YYYY or MM/YY; empty where the row has no card. */
function expiryOf({ expiry_month: month, expiry_year: year }: Ended, form: string): string {
  if (month === undefined || year === undefined) return ''
  return form.replace(/Y+|M+/g, part => partOf(part, month, year))
}

function partOf(part: string, month: number, year: number): string {
  const number = part.startsWith('Y') ? year % 10 ** part.length : month
  return String(number).padStart(part.length, '0')
}
