// Warns during a run when rows of a file begin to be rejected without a break after others were accepted: then the file
// changed in its midst. early-word.ts warns of files of which no row fits.

import type { FileCounts } from '../file-outcome.ts'
import { wordOf } from './early-word.ts'
import type { FileRow } from './result-row.ts'

/** Fewer rejected rows in succession may be chance. */
const SERIES_MIN = 1_000
/** The most warnings about one file. */
const TOLD_MAX = 5

type Ended = Pick<FileRow, 'line' | 'fileLine' | 'outcome' | 'reason'>

export interface SeriesWord {
  /** Takes the next rows in the order of the file, and the counts of all rows up to them. */
  see(rows: readonly Ended[], counts: FileCounts): void
}

interface Series {
  /** The line of its first row. */
  line: number
  rows: number
  reasons: Map<string, number>
  told: boolean
}

export function openSeriesWord(tell: (line: string) => void): SeriesWord {
  let series: Series | undefined
  let told = 0
  return {
    see(rows, counts) {
      for (const row of rows) {
        if (row.outcome === 'SKIPPED') continue
        if (row.outcome !== 'REJECTED') series = undefined
        else {
          series ??= { line: row.fileLine ?? row.line, rows: 0, reasons: new Map(), told: false }
          series.rows += 1
          const { reason = '' } = row
          series.reasons.set(reason, (series.reasons.get(reason) ?? 0) + 1)
        }
      }
      if (!series || series.told || series.rows < SERIES_MIN || told >= TOLD_MAX || !hasOthers(counts)) return
      series.told = true
      told += 1
      tell(textOf(series))
    },
  }
}

/** Whether a row before the series ended in another way. */
function hasOthers({ SKIPPED: _, REJECTED: __, ...others }: FileCounts): boolean {
  return Object.values(others).some(n => n > 0)
}

function textOf({ line, rows, reasons }: Series): string {
  const [first = ['', 0]] = [...reasons].sort(([, a], [, b]) => b - a)
  const share = reasons.size === 1 ? '' : ', most of them so'
  return `from line ${line} on all ${rows} rows so far are rejected${share}: ${wordOf(first[0])} Other rows of the batch fitted. Ctrl-C stops this run; --max-rejected stops a run by itself.`
}
