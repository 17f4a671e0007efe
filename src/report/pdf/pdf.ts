// A report as PDF: for whom it is and its period, its totals, a small chart, the table, page n of m. Its size is
// bounded: a report of more than LINES_MAX lines shows only group sums, and says so. The same report gives the same
// bytes.
import { type Definition, hasMoney, isSummed, type Plan } from '../definition.ts'
import { type Head, instant, periodText, type Write } from '../report-header.ts'
import type { Entry, Total } from '../tie-out.ts'
import { type Bars, openBars } from './chart.ts'
import { drawFooters, drawHeading, drawParagraph, openDocument } from './document.ts'
import { INK, type Sheet, setText, sheetOf } from './page.ts'
import { counted, openTable, sumOf } from './table.ts'

export const LINES_MAX = 5_000
const CHART_HEIGHT = 104

export const writePdf: Write = async function* (definition, plan, head, entries) {
  const sheet = sheetOf(definition)
  const lines = head.totals.reduce((sum, total) => sum + total.lines, 0n)
  const condensed = lines > LINES_MAX
  const bars = definition.chart && openBars(definition.chart, mainCurrency(definition, head.totals))
  const { kept, groups } = await keep(entries, condensed, bars)
  const title = `${definition.title}, ${periodText(plan, head.asOf)}`
  const doc = openDocument(sheet, { title, at: head.asOf })
  doc.addPage()
  let y = heading(doc, definition, plan, head, sheet)
  if (condensed) {
    const by = definition.groupLabel.toLowerCase()
    const text = `${counted(lines)} are more than a reader can follow on paper: this document gives the sums by ${by}. The CSV of this report lists every line.`
    y = drawParagraph(doc, text, y, { sheet, color: INK.text, bold: true }) + 6
  }
  y = totals(doc, definition, head.totals, y, sheet)
  const width = sheet.right - sheet.left
  if (bars?.draw(doc, { x: sheet.left, y, width, height: CHART_HEIGHT })) y += CHART_HEIGHT + 14
  const table = openTable(doc, definition, { sheet, y, condensed })
  for (const entry of kept) table.draw(entry)
  if (lines === 0n) table.say('There is nothing to report.')
  if (groups > LINES_MAX && condensed)
    table.say(`The first ${LINES_MAX} of ${groups} groups are shown; the totals are of all of them.`)
  drawFooters(doc, `Report ${head.reportUid}`, sheet)
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

function heading(doc: PDFKit.PDFDocument, definition: Definition, plan: Plan, head: Head, sheet: Sheet): number {
  const facts = [
    ['Merchant entity', head.entityId],
    ['Report', head.reportUid],
    ['As of (UTC)', instant(head.asOf).replace('T', ' ').replace('Z', '')],
  ] as const
  const subtitle = periodText(plan, head.asOf)
  let y = drawHeading(doc, { title: definition.title, subtitle, facts }, sheet)
  for (const note of plan.notes) y = drawParagraph(doc, note, y, { sheet })
  return y + 6
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
