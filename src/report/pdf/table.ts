// The table of a report in PDF: headings on each page, every second line shaded, a group's sums under its last line.
// Rows never break over pages. It draws entry after entry as it gets them.
import { type Column, type Definition, isSummed, type Row } from '../definition.ts'
import { amountOf } from '../entry-cells.ts'
import { grouped } from '../money.ts'
import type { Entry, Sums } from '../tie-out.ts'
import { INK, type Sheet, setText } from './page.ts'

interface Table {
  /** The y coordinate of the next row. */
  y(): number
  draw(entry: Entry): void
  say(text: string): void
}

interface TableOptions {
  sheet: Sheet
  y: number
  /** The table shows groups instead of lines. */
  condensed: boolean
}

interface Place extends Column {
  x: number
  wide: number
}

const PAD = 3

export function openTable(doc: PDFKit.PDFDocument, definition: Definition, options: TableOptions): Table {
  const { sheet, condensed } = options
  const size = definition.landscape && !condensed ? 6.5 : 8
  const rowHeight = size + 6
  const places = placesOf(definition, sheet, condensed)
  let y = options.y
  let banded = false
  heading()

  function heading(): void {
    doc.rect(sheet.left, y, sheet.right - sheet.left, rowHeight + 2).fill(INK.dark)
    for (const place of places) cell(place, place.label, { bold: true, color: '#ffffff', whole: false, dy: 1 })
    y += rowHeight + 2
  }
  function room(rows = 1): void {
    if (y + rows * rowHeight <= sheet.bottom) return
    doc.addPage()
    y = sheet.top
    banded = false
    heading()
  }
  function cell(
    { x, wide, type }: Place,
    text: string,
    { bold = false, color = INK.text, whole = isNumber(type), dy = 0 } = {},
  ): void {
    if (text === '') return
    const box = { x: x + PAD, y: y + 3 + dy, width: wide - 2 * PAD }
    setText(doc, text, box, { size, bold, color, whole, align: isNumber(type) ? 'right' : 'left' })
  }
  function band(color: string): void {
    doc.rect(sheet.left, y, sheet.right - sheet.left, rowHeight).fill(color)
  }

  function lineRow(row: Row): void {
    room()
    if (banded) band(INK.zebra)
    banded = !banded
    for (const place of places) cell(place, shownOf(place, row))
    y += rowHeight
  }
  function groupRow(row: Row, lines: bigint, sums: Sums): void {
    room()
    if (banded) band(INK.zebra)
    banded = !banded
    for (const place of places) cell(place, place.name === LINES ? `${lines}` : sumOf(place, row, sums))
    y += rowHeight
  }
  /** Draws a row of sums: each under its column, and a label over the columns without a sum. */
  function sumRow(label: string, row: Row, sums: Sums, lines: bigint, strong: boolean): void {
    room()
    band(strong ? INK.sum : INK.zebra)
    doc
      .moveTo(sheet.left, y)
      .lineTo(sheet.right, y)
      .lineWidth(strong ? 0.8 : 0.4)
      .stroke(strong ? INK.dark : INK.rule)
    const summed = places.filter(place => isSummed(place) || place.name === LINES)
    const until = summed[0]?.x ?? sheet.right
    const text = condensed ? label : `${label}: ${counted(lines)}`
    setText(doc, text, { x: sheet.left + PAD, y: y + 3, width: until - sheet.left - 2 * PAD }, { size, bold: true })
    for (const place of summed)
      cell(place, place.name === LINES ? `${lines}` : sumOf(place, row, sums), { bold: true, whole: true })
    y += rowHeight + (strong ? 0 : 3)
    banded = false
  }

  return {
    y: () => y,
    draw(entry) {
      switch (entry.kind) {
        case 'line':
          if (!condensed) lineRow(entry.row)
          return
        case 'group': {
          const { row, lines, sums } = entry.group
          if (condensed) groupRow(row, lines, sums)
          else sumRow(nameOf(definition, row), row, sums, lines, false)
          return
        }
        case 'total': {
          const { currency, lines, sums } = entry.total
          sumRow(`Total ${currency ?? ''}`.trim(), { currency: currency ?? null }, sums, lines, true)
          return
        }
      }
    },
    say(text) {
      room(2)
      const box = { x: sheet.left + PAD, y: y + 6, width: sheet.right - sheet.left - 2 * PAD }
      setText(doc, text, box, { size: 9, color: INK.soft })
      y += 2 * rowHeight
    },
  }
}

const LINES = '#lines'
const LINES_COLUMN: Column = { name: LINES, label: 'Lines', type: 'count', width: 10, paper: 10 }

function placesOf({ columns, group }: Definition, sheet: Sheet, condensed: boolean): Place[] {
  const shown = condensed
    ? [
        ...columns.filter(({ name }) => group.includes(name)).map(wider),
        LINES_COLUMN,
        ...columns.filter(column => isSummed(column) && column.paper > 0),
      ]
    : columns.filter(({ paper }) => paper > 0)
  const unit = (sheet.right - sheet.left) / shown.reduce((sum, { paper }) => sum + paper, 0)
  let x = sheet.left
  return shown.map(column => {
    const place = { ...column, x, wide: column.paper * unit }
    x += place.wide
    return place
  })
}

/** A condensed table has fewer columns, so each can be wider. */
const wider = (column: Column): Column => ({ ...column, paper: Math.max(column.paper, 14) })

const isNumber = (type: Column['type']) => type === 'money' || type === 'count' || type === 'number'

function nameOf({ group, groupLabel }: Definition, row: Row): string {
  const values = group.toReversed().map(name => row[name] ?? '-')
  return `${groupLabel} ${values.join(', ')}`
}

export const counted = (lines: bigint): string => `${grouped(`${lines}`)} ${lines === 1n ? 'line' : 'lines'}`

function shownOf({ name, type }: Column, row: Row): string {
  const value = row[name] ?? ''
  if (type === 'money') return grouped(amountOf(BigInt(value), row))
  if (type === 'time') return value.replace('T', ' ').replace('Z', '')
  return isNumber(type) ? grouped(value) : value
}

export function sumOf(column: Column, row: Row, sums: Sums): string {
  if (!isSummed(column)) return row[column.name] ?? ''
  const sum = sums[column.name] ?? 0n
  return grouped(column.type === 'money' ? amountOf(sum, row) : `${sum}`)
}
