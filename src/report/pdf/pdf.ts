// A report as PDF: for whom it is and its period, its totals, a small chart, the table, page n of m. Its size is
// bounded: a report of more than LINES_MAX lines shows only group sums, and says so. The same report gives the same
// bytes.
import PDFDocument from 'pdfkit'
import { type Definition, hasMoney, isSummed, type Plan } from '../definition.ts'
import { type Head, instant, periodText, type Write } from '../report-header.ts'
import type { Entry, Total } from '../tie-out.ts'
import { type Bars, openBars } from './chart.ts'
import { FONT, INK, printable, type Sheet, setText, sheetOf } from './page.ts'
import { counted, openTable, sumOf } from './table.ts'

export const LINES_MAX = 5_000
const CHART_HEIGHT = 104

export const writePdf: Write = async function* (definition, plan, head, entries) {
  const sheet = sheetOf(definition)
  const lines = head.totals.reduce((sum, total) => sum + total.lines, 0n)
  const condensed = lines > LINES_MAX
  const bars = definition.chart && openBars(definition.chart, mainCurrency(definition, head.totals))
  const { kept, groups } = await keep(entries, condensed, bars)
  const doc = openDocument(definition, plan, head, sheet)
  doc.addPage()
  let y = heading(doc, definition, plan, head, sheet)
  if (condensed) {
    const by = definition.groupLabel.toLowerCase()
    const text = `${counted(lines)} are more than a reader can follow on paper: this document gives the sums by ${by}. The CSV of this report lists every line.`
    y = paragraph(doc, text, y, sheet, INK.text, true) + 6
  }
  y = totals(doc, definition, head.totals, y, sheet)
  const width = sheet.right - sheet.left
  if (bars?.draw(doc, { x: sheet.left, y, width, height: CHART_HEIGHT })) y += CHART_HEIGHT + 14
  const table = openTable(doc, definition, { sheet, y, condensed })
  for (const entry of kept) table.draw(entry)
  if (lines === 0n) table.say('There is nothing to report.')
  if (groups > LINES_MAX && condensed)
    table.say(`The first ${LINES_MAX} of ${groups} groups are shown; the totals are of all of them.`)
  footers(doc, head, sheet)
  doc.end()
  for await (const chunk of doc as AsyncIterable<Buffer>) yield chunk
}

/**
 * Collects what will be drawn, within bounds. All entries are read before drawing begins, so the whole report has been
 * checked by then.
 */
async function keep(entries: AsyncIterable<readonly Entry[]>, condensed: boolean, bars: Bars | undefined) {
  const kept: Entry[] = []
  let groups = 0
  for await (const page of entries) {
    for (const entry of page) {
      if (entry.kind === 'line') bars?.note(entry.row)
      if (entry.kind === 'group') groups += 1
      const shown = condensed ? entry.kind !== 'line' && (entry.kind !== 'group' || groups <= LINES_MAX) : true
      if (shown) kept.push(entry)
    }
  }
  return { kept, groups }
}

function openDocument(definition: Definition, plan: Plan, head: Head, sheet: Sheet): PDFKit.PDFDocument {
  return new PDFDocument({
    size: [sheet.width, sheet.height],
    // Text is placed at coordinates; with a margin the library would break pages by itself.
    margin: 0,
    autoFirstPage: false,
    bufferPages: true,
    compress: true,
    lang: 'en',
    info: {
      Title: `${definition.title}, ${printable(periodText(plan, head.asOf))}`,
      Author: 'tokenmill',
      Creator: 'tokenmill',
      Producer: 'tokenmill',
      CreationDate: new Date(head.asOf),
    },
  })
}

function heading(doc: PDFKit.PDFDocument, definition: Definition, plan: Plan, head: Head, sheet: Sheet): number {
  const { left, right, top } = sheet
  const half = (right - left) / 2
  setText(doc, definition.title, { x: left, y: top, width: half }, { size: 18, bold: true, color: INK.dark })
  setText(doc, periodText(plan, head.asOf), { x: left, y: top + 24, width: half }, { size: 11, color: INK.soft })
  const facts = [
    ['Merchant entity', head.entityId],
    ['Report', head.reportUid],
    ['As of (UTC)', instant(head.asOf).replace('T', ' ').replace('Z', '')],
  ]
  for (const [index, [name = '', value = '']] of facts.entries()) {
    const y = top + 3 + index * 13
    setText(doc, name, { x: right - 250, y, width: 70 }, { size: 8, color: INK.soft })
    setText(doc, value, { x: right - 178, y, width: 178 }, { size: 8, align: 'right' })
  }
  doc
    .moveTo(left, top + 46)
    .lineTo(right, top + 46)
    .lineWidth(1.2)
    .stroke(INK.dark)
  let y = top + 54
  for (const note of plan.notes) y = paragraph(doc, note, y, sheet, INK.soft)
  return y + 6
}

function paragraph(
  doc: PDFKit.PDFDocument,
  text: string,
  y: number,
  { left, right }: Sheet,
  color: string,
  bold = false,
): number {
  doc
    .font(bold ? FONT.bold : FONT.plain)
    .fontSize(8.5)
    .fillColor(color)
  doc.text(printable(text), left, y, { width: right - left })
  return doc.y + 1
}

/** Draws one box per currency. */
function totals(
  doc: PDFKit.PDFDocument,
  definition: Definition,
  stated: readonly Total[],
  from: number,
  sheet: Sheet,
): number {
  const summed = definition.columns.filter(column => isSummed(column) && column.paper > 0)
  const width = sheet.right - sheet.left
  let y = from
  // All currencies are at the end of the table; the first page shows as many as fit.
  for (const { currency, lines, sums } of stated.slice(0, definition.landscape ? 4 : 8)) {
    doc.rect(sheet.left, y, width, 30).fill(INK.sum)
    const cells = [
      { label: currency === undefined ? 'Total' : `Total ${currency}`, value: counted(lines) },
      ...summed.map(column => ({ label: column.label, value: sumOf(column, { currency: currency ?? null }, sums) })),
    ]
    const step = width / cells.length
    for (const [index, { label, value }] of cells.entries()) {
      const x = sheet.left + index * step + 6
      setText(doc, label, { x, y: y + 5, width: step - 12 }, { size: 7, color: INK.soft })
      setText(doc, value, { x, y: y + 15, width: step - 12 }, { size: 10, bold: true, whole: true })
    }
    y += 34
  }
  return y + 6
}

function mainCurrency(definition: Definition, stated: readonly Total[]): string | undefined {
  if (!hasMoney(definition)) return undefined
  return stated.reduce((main, total) => (total.lines > main.lines ? total : main), stated[0] ?? NONE).currency
}
const NONE: Total = { currency: '', lines: 0n, sums: {} }

function footers(doc: PDFKit.PDFDocument, head: Head, { left, right, bottom }: Sheet): void {
  const { start, count } = doc.bufferedPageRange()
  for (let page = start; page < start + count; page += 1) {
    doc.switchToPage(page)
    doc
      .moveTo(left, bottom + 8)
      .lineTo(right, bottom + 8)
      .lineWidth(0.5)
      .stroke(INK.rule)
    const y = bottom + 13
    setText(doc, `Report ${head.reportUid}`, { x: left, y, width: 300 }, { size: 7, color: INK.soft })
    setText(
      doc,
      `Page ${page + 1} of ${count}`,
      { x: right - 100, y, width: 100 },
      { size: 7, color: INK.soft, align: 'right' },
    )
  }
}
