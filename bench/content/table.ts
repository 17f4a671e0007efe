// Prints what the mixes measured: one line for each mix and checkout, with medians, and the lowest and the highest in
// parentheses.
import { printTable } from '../line.ts'
import { type Spread, spreadOf, textOf } from '../repeat/spread.ts'
import { type FormCounts, leftColumns } from './forms.ts'
import type { ContentLine } from './line.ts'
import { MIXES } from './mixes.ts'

export type Side = 'old' | 'new'

interface Measured {
  side: Side
  line: ContentLine
}

interface Summary {
  side: Side
  mix: string
  engine: string
  rows: number
  runs: number
  perSecond: Spread | undefined
  /** Ratios of rates in the same run. */
  toBare: Spread | undefined
  toBase: Spread | undefined
  toNaive: Spread | undefined
  /** µs a row. */
  workers: Spread | undefined
  command: Spread | undefined
  PostgreSQL: Spread | undefined
  /** The workers' µs a row, as a multiple of those of the base in the same run. */
  workersToBase: Spread | undefined
  /** The most records that left the columns in a run, besides known and refused ones. */
  left: number | undefined
  /** The most records that were refused in a run: with more than the mix has wrong ones, its figures say nothing. */
  refused: number | undefined
  /** The highest resident memory of the command, and of a worker process, in MiB. */
  residentMiB: { command: number; worker: number }
}

const HEAD = [
  'mix',
  'side',
  'rows',
  'runs',
  'per second',
  '÷ d',
  '÷ base',
  '÷ job a card',
  'µs: workers',
  'command',
  'PostgreSQL',
  'workers ÷ base',
  'left columns',
  'refused',
  'MiB: command',
  'worker',
]

/** The lines of one engine. */
export function printMixes(measured: readonly Measured[]): void {
  const summaries = [...Map.groupBy(measured, ({ side, line }) => `${line.case} ${side}`).values()].map(summaryOf)
  printTable([
    HEAD,
    ...summaries.map(one => [
      one.mix,
      one.side,
      String(one.rows),
      String(one.runs),
      textOf(one.perSecond, 0),
      textOf(one.toBare, 2),
      textOf(one.toBase, 2),
      textOf(one.toNaive, 1),
      textOf(one.workers, 1),
      textOf(one.command, 1),
      textOf(one.PostgreSQL, 1),
      textOf(one.workersToBase, 2),
      String(one.left ?? ''),
      String(one.refused ?? ''),
      String(one.residentMiB.command),
      String(one.residentMiB.worker),
    ]),
  ])
  for (const summary of summaries) console.log(JSON.stringify(summary))
}

function summaryOf(measured: readonly Measured[]): Summary {
  const lines = measured.map(({ line }) => line)
  const [{ side, line }] = measured as [Measured]
  const mix = line.case.slice(line.case.indexOf(' ') + 1)
  const spread = (of: (one: ContentLine) => number | undefined) => spreadOf(lines.flatMap(one => of(one) ?? []))
  const most = (of: (forms: FormCounts) => number) => {
    const counts = lines.flatMap(({ forms }) => (forms ? [of(forms)] : []))
    return counts.length > 0 ? Math.max(...counts) : undefined
  }
  return {
    side,
    mix,
    engine: line.engine,
    rows: line.rows,
    runs: lines.length,
    perSecond: spread(one => one.perSecond),
    toBare: spread(one => one.perSecond / one.barePerSecond),
    toBase: spread(one => one.perSecond / one.basePerSecond),
    toNaive: spread(one => one.naivePerSecond && one.perSecond / one.naivePerSecond),
    workers: spread(one => one.processor?.workers),
    command: spread(one => one.processor?.command),
    PostgreSQL: spread(one => one.processor?.PostgreSQL),
    workersToBase: spread(({ processor, baseProcessor }) => {
      const [ofMix, ofBase] = [processor?.workers, baseProcessor?.workers]
      return ofMix !== undefined && ofBase ? ofMix / ofBase : undefined
    }),
    left: most(forms => leftColumns(forms, MIXES[mix]?.update !== undefined)),
    refused: most(({ columns, objects }) => (columns.REJECTED ?? 0) + (objects.REJECTED ?? 0)),
    residentMiB: {
      command: Math.max(...lines.flatMap(({ residentMiB }) => residentMiB?.['migrate'] ?? []), 0),
      worker: Math.max(...lines.flatMap(({ residentMiB }) => residentMiB?.['workers'] ?? []), 0),
    },
  }
}
