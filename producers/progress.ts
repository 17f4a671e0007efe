// Shows the progress of a run on standard error: a bar on a terminal, else a line every ten seconds. It prints what the
// caller counted.
import { Presets, SingleBar } from 'cli-progress'
import type { Clock } from '../src/clock.ts'
import { type Counts, noCounts, OUTCOMES, sumOf } from '../src/job/outcome.ts'

export interface ProgressOptions {
  stream: NodeJS.WriteStream
  clock: Clock
  /** Number of rows of the file; absent for standard input. */
  total?: number | undefined
  /** Rows that an earlier run has done: they count for the bar, not for the rate. */
  done?: number | undefined
  /** Pause between two lines where the stream is no terminal, ms. */
  everyMs?: number | undefined
}

export interface Progress {
  /** Takes the number of rows answered so far, by outcome. */
  update(counts: Counts): void
  /** Prints the last state and restores the terminal. */
  stop(): void
}

const BAR = ' {bar} {percentage}% | {value}/{total} rows | {rate} rows/s | ETA {left} | {outcomes}'
const EVERY_MS = 10_000

export function openProgress(options: ProgressOptions): Progress {
  const { stream, clock, total, done = 0, everyMs = EVERY_MS } = options
  const start = clock()
  let counts = noCounts()
  let lineAt = start
  const measure = () => measureRun({ rows: sumOf(counts), done, total, ms: clock() - start })
  const isTerminal = stream.isTTY === true && total !== undefined
  const bar = isTerminal
    ? new SingleBar(
        {
          format: BAR,
          stream,
          fps: 5,
          hideCursor: true,
          clearOnComplete: false,
          stopOnComplete: false,
          linewrap: false,
          gracefulExit: false,
        },
        Presets.shades_classic,
      )
    : undefined
  bar?.start(total ?? 0, done, { rate: 0, left: '?', outcomes: '' })
  const print = () => {
    lineAt = clock()
    stream.write(`${lineOf(counts, measure(), total)}\n`)
  }
  // A line is due even where no row is answered.
  const ticking = setInterval(() => {
    if (bar === undefined && clock() - lineAt >= everyMs) print()
  }, everyMs)
  ticking.unref()
  // A process that ends with its bar on leaves the terminal as it was.
  const restore = () => stream.write('\u001b[?25h\u001b[?7h')
  if (bar) process.once('exit', restore)
  return {
    update(next) {
      counts = { ...next }
      if (bar === undefined) {
        if (clock() - lineAt >= everyMs) print()
        return
      }
      const { rate, left } = measure()
      bar.update(sumOf(counts), { rate, left, outcomes: describe(counts) })
    },
    stop() {
      clearInterval(ticking)
      process.off('exit', restore)
      if (bar === undefined) print()
      else bar.stop()
    },
  }
}

interface Measured {
  rate: number
  left: string
}

export function measureRun(run: { rows: number; done: number; total: number | undefined; ms: number }): Measured {
  const rate = run.ms <= 0 ? 0 : Math.round(((run.rows - run.done) * 1000) / run.ms)
  if (run.total === undefined || rate <= 0) return { rate, left: '?' }
  return { rate, left: duration(Math.ceil((run.total - run.rows) / rate)) }
}

function lineOf(counts: Counts, { rate, left }: Measured, total: number | undefined): string {
  const rows = sumOf(counts)
  const of = total === undefined ? '' : ` of ${total}`
  return `${rows}${of} rows, ${rate} rows/s, ETA ${left}: ${describe(counts)}`
}

/** `created 9200, rejected 250`: outcomes without rows aren't named. */
function describe(counts: Counts): string {
  const named = OUTCOMES.filter(name => counts[name] > 0).map(name => `${name.toLowerCase()} ${counts[name]}`)
  return named.length === 0 ? 'none yet' : named.join(', ')
}

function duration(seconds: number): string {
  if (seconds < 60) return `${seconds} s`
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`
  return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`
}
