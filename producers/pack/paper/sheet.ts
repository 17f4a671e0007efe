// Draws one part below the other on the pages of a paper: titles, paragraphs, tables, boxes of counts. A row of a table is
// never cut by the end of a page; a table that goes on repeats its headings.
import { grouped as groupedText } from '../../../src/report/money.ts'
import { drawParagraph } from '../../../src/report/pdf/document.ts'
import { type Box, FONT, INK, printable, type Sheet, setText } from '../../../src/report/pdf/page.ts'

export interface Column {
  label: string
  /** The share of the width. */
  width: number
  /** A number isn't broken, and stands at the right of its column. */
  number?: boolean
  size?: number
}

export type Cells = readonly (string | number)[]

export interface PaperSheet {
  title(text: string): void
  say(text: string, strong?: boolean): void
  table(columns: readonly Column[], rows: readonly Cells[]): void
  counts(all: readonly { label: string; value: number }[]): void
  /** Draws something that needs `height` without a break. */
  whole(height: number, draw: (doc: PDFKit.PDFDocument, area: Box) => void): void
}

const PAD = 3
const SIZE = 7.5
const GAP = 8

/** Begins at `from` on the current page. */
export function openSheet(doc: PDFKit.PDFDocument, sheet: Sheet, from: number): PaperSheet {
  const { left, right, top, bottom } = sheet
  const width = right - left
  let y = from

  /** Goes to the next page if less than `height` is left. */
  function need(height: number): boolean {
    if (y + height <= bottom) return false
    doc.addPage()
    y = top
    return true
  }

  return {
    title(text) {
      y += GAP
      // A title is on the same page as what follows it.
      need(60)
      setText(doc, text, { x: left, y, width }, { size: 11, bold: true, color: INK.dark })
      y += 17
    },
    say(text, strong = false) {
      doc.font(strong ? FONT.bold : FONT.plain).fontSize(8.5)
      need(doc.heightOfString(printable(text), { width }))
      y = drawParagraph(doc, text, y, { sheet, color: INK.text, bold: strong }) + 3
    },
    table(columns, rows) {
      const places = placesOf(columns, left, width)
      const heading = () => {
        doc.rect(left, y, width, SIZE + 8).fill(INK.dark)
        for (const place of places)
          setText(doc, place.label, { ...place.box, y: y + 4 }, { ...styleOf(place), bold: true, color: '#ffffff' })
        y += SIZE + 8
      }
      const heights = rows.map(row => heightOf(doc, places, row))
      need(SIZE + 8 + (heights[0] ?? 0))
      heading()
      for (const [index, row] of rows.entries()) {
        const height = heights[index] ?? 0
        if (need(height)) heading()
        if (index % 2 === 1) doc.rect(left, y, width, height).fill(INK.zebra)
        drawRow(doc, places, row, y)
        y += height
      }
      y += 4
    },
    counts(all) {
      const across = 4
      const step = width / across
      for (let start = 0; start < all.length; start += across) {
        need(36)
        doc.rect(left, y, width, 32).fill(INK.sum)
        for (const [index, { label, value }] of all.slice(start, start + across).entries()) {
          const box = { x: left + index * step + 6, width: step - 12 }
          setText(doc, label, { ...box, y: y + 5 }, { size: 7, color: INK.soft })
          setText(doc, grouped(value), { ...box, y: y + 15 }, { size: 12, bold: true, whole: true })
        }
        y += 36
      }
    },
    whole(height, draw) {
      y += GAP
      need(height)
      draw(doc, { x: left, y, width })
      y += height
    },
  }
}

export function grouped(count: number): string {
  return groupedText(String(count))
}

interface Place extends Column {
  box: { x: number; width: number }
}

function placesOf(columns: readonly Column[], left: number, width: number): Place[] {
  const unit = width / columns.reduce((sum, column) => sum + column.width, 0)
  let x = left
  return columns.map(column => {
    const place = { ...column, box: { x: x + PAD, width: column.width * unit - 2 * PAD } }
    x += column.width * unit
    return place
  })
}

function styleOf({ number = false, size = SIZE }: Column) {
  return { size, align: number ? ('right' as const) : ('left' as const), whole: number }
}

const textOf = (cell: string | number | undefined) => (typeof cell === 'number' ? grouped(cell) : (cell ?? ''))

function heightOf(doc: PDFKit.PDFDocument, places: readonly Place[], row: Cells): number {
  const heights = places.map(({ number, size = SIZE, box }, index) => {
    if (number) return size
    return doc
      .font(FONT.plain)
      .fontSize(size)
      .heightOfString(printable(textOf(row[index])), { width: box.width })
  })
  return Math.max(SIZE, ...heights) + 5
}

function drawRow(doc: PDFKit.PDFDocument, places: readonly Place[], row: Cells, y: number): void {
  for (const [index, place] of places.entries()) {
    const text = textOf(row[index])
    if (text === '') continue
    if (place.number) {
      setText(doc, text, { ...place.box, y: y + 3 }, styleOf(place))
      continue
    }
    doc
      .font(FONT.plain)
      .fontSize(place.size ?? SIZE)
      .fillColor(INK.text)
    doc.text(printable(text), place.box.x, y + 3, { width: place.box.width })
  }
}
