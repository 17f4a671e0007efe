// A small bar chart of one column over a report's lines, in the currency with the most lines. The bars are an
// illustration; the table has all figures.
import type { Chart, Row } from '../definition.ts'
import { amountOf } from '../entry-cells.ts'
import { grouped } from '../money.ts'
import { type Box, INK, setText } from './page.ts'

export interface Bars {
  note(row: Row): void
  /** Draws the chart. Returns false if it would show nothing of use. */
  draw(doc: PDFKit.PDFDocument, box: Box & { height: number }): boolean
}

const BARS = { min: 2, max: 62 } as const

/** `currency`: only lines of this currency are drawn; undefined if the report has no money. */
export function openBars(chart: Chart, currency: string | undefined): Bars {
  const sums = new Map<string, bigint>()
  const row: Row = { currency: currency ?? null }
  const shown = (sum: bigint) => grouped(currency === undefined ? `${sum}` : amountOf(sum, row))
  return {
    note(line) {
      if (currency !== undefined && line['currency'] !== currency) return
      const bar = chart.by(line)
      if (sums.size <= BARS.max || sums.has(bar)) sums.set(bar, (sums.get(bar) ?? 0n) + BigInt(line[chart.of] ?? '0'))
    },
    draw(doc, { x, y, width, height }) {
      if (sums.size < BARS.min || sums.size > BARS.max) return false
      const bars = [...sums].sort(([a], [b]) => (a < b ? -1 : 1))
      const range = rangeOf(bars)
      if (range.most === range.least) return false
      const title = currency === undefined ? chart.label : `${chart.label}, ${currency}`
      setText(doc, title, { x, y, width }, { size: 8, bold: true, color: INK.soft })
      drawScale(doc, { x, y: y + 16, width: 80, height: height - 16 - 14 }, range, shown)
      drawBars(doc, { x: x + 86, y: y + 16, width: width - 86, height: height - 16 - 14 }, range, bars)
      return true
    },
  }
}

/** The range of the bars' values. It always includes 0, because bars stand on zero. */
interface Range {
  most: bigint
  least: bigint
}

type Bar = readonly [name: string, sum: bigint]
type Area = Box & { height: number }

function rangeOf(bars: readonly Bar[]): Range {
  let most = 0n
  let least = 0n
  for (const [, sum] of bars) {
    if (sum > most) most = sum
    if (sum < least) least = sum
  }
  return { most, least }
}

function drawScale(
  doc: PDFKit.PDFDocument,
  { x, y, width, height }: Area,
  { most, least }: Range,
  shown: (sum: bigint) => string,
): void {
  const write = (sum: bigint, at: number) =>
    setText(doc, shown(sum), { x, y: at, width }, { size: 7, color: INK.soft, align: 'right', whole: true })
  write(most, y - 2)
  if (least < 0n) write(least, y + height - 5)
}

function drawBars(
  doc: PDFKit.PDFDocument,
  { x, y, width, height }: Area,
  { most, least }: Range,
  bars: readonly Bar[],
): void {
  const span = Number(most - least)
  const zero = y + (Number(most) / span) * height
  const step = width / bars.length
  const every = Math.ceil(46 / step)
  for (const [index, [name, sum]] of bars.entries()) {
    const size = Math.abs(Number(sum) / span) * height
    const left = x + index * step + step * 0.15
    doc.rect(left, sum < 0n ? zero : zero - size, Math.min(step * 0.7, 60), size).fill(sum < 0n ? '#b0584a' : '#3d7199')
    const label = { x: left, y: y + height + 4, width: step * every - 4 }
    if (index % every === 0) setText(doc, name, label, { size: 6.5, color: INK.soft })
  }
  doc
    .moveTo(x, zero)
    .lineTo(x + width, zero)
    .lineWidth(0.5)
    .stroke(INK.rule)
}
