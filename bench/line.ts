// What a case of the bench measured: one line of its output. Other checkouts of the bench print fewer members, so all but
// the first three are optional.
import type { ProcessorTime } from './single/processor.ts'

export interface Line {
  /** Begins with the letter of the case. */
  case: string
  engine: string
  rows: number
  perSecond?: number
  /** The reference, and what it reached. */
  limit?: string
  limitPerSecond?: number
  ratio?: number
  /** Of requests or single jobs, in ms. */
  p50?: number
  p99?: number
  /** In µs per piece of work, by process. */
  processor?: ProcessorTime
  limitProcessor?: ProcessorTime
  /** The highest resident memory of each process. */
  residentMiB?: Record<string, number | number[]>
  [more: string]: unknown
}

export function printLines(lines: readonly Line[]): void {
  const table = [
    ['case', 'engine', 'rows', 'per second', 'beside', 'its /s', 'ratio', 'p50, p99 ms'],
    ...lines.map(({ case: name, engine, rows, perSecond, limit, limitPerSecond, ratio, p50, p99 }) => [
      name,
      engine,
      String(rows),
      perSecond?.toFixed(0) ?? '',
      limit ?? '',
      limitPerSecond?.toFixed(0) ?? '',
      ratio?.toFixed(2) ?? '',
      p50 === undefined ? '' : `${p50}, ${p99}`,
    ]),
  ]
  printTable(table)
  // The lines of one case share its figures.
  const details = lines.flatMap(({ case: name, engine, limit, processor, limitProcessor, residentMiB }) => [
    ...(processor ? [`${name}, ${engine}, µs each: ${textOf(processor)}`] : []),
    ...(residentMiB ? [`${name}, ${engine}, highest resident MiB: ${textOf(residentMiB)}`] : []),
    ...(limitProcessor ? [`${limit}, µs each: ${textOf(limitProcessor)}`] : []),
  ])
  for (const detail of new Set(details)) console.log(detail)
  for (const line of lines) console.log(JSON.stringify(line))
}

export function printTable(table: readonly (readonly string[])[]): void {
  const widths = table[0]?.map((_, column) => Math.max(...table.map(row => row[column]?.length ?? 0))) ?? []
  for (const row of table)
    console.log(
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
}

/** Without processes that took no time. */
function textOf(figures: Record<string, number | number[]>): string {
  const used = Object.entries(figures).filter(([, figure]) => figure !== 0)
  return used.map(([name, figure]) => `${name} ${[figure].flat().join(' and ')}`).join(', ')
}
