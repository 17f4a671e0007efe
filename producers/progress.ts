// Shows the progress of a run on standard error: a bar in the last line of a terminal, else a line every ten seconds.
// The caller counts. The line says, too, what the run waits for and since when: a server that refuses or is away, or one that
// holds up the workers who have its oldest job.
import { cleanText } from '../src/clean-text.ts'
import type { Clock } from '../src/clock.ts'
import { FAULTS, type FaultCode } from '../src/errors.ts'
import { type Counts, noCounts, OUTCOMES, sumOf } from '../src/job/outcome.ts'
import type { Queues } from '../src/queue/engine.ts'

export interface ProgressOptions {
  stream: NodeJS.WriteStream
  clock: Clock
  /** Number of rows of the file; absent for standard input. */
  total?: number | undefined
  /** Rows that an earlier run has done; they count in the bar but not in the rate. */
  done?: number | undefined
  /** What the run waits for, shown behind the estimated time; undefined: nothing. */
  waitsFor?: (() => string | undefined) | undefined
  /** What holds the run up is shown at the end of the line; `stop` ends the watch. */
  awaited?: Awaited | undefined
  /** The pause between two lines if the stream isn't a terminal, in ms. */
  everyMs?: number | undefined
}

export interface Progress {
  /** Takes the number of rows answered so far, by outcome. */
  update(counts: Counts): void
  /** Prints the last state and restores the terminal. */
  stop(): void
}

interface Printer {
  update(): void
  stop(): void
}

const LINE_MS = 10_000
const DRAW_MS = 200

export function openProgress(options: ProgressOptions): Progress {
  const { stream, clock, total, done = 0, awaited, everyMs = LINE_MS, waitsFor = () => undefined } = options
  const start = clock()
  let counts = noCounts()
  const facts = (): RunFacts => {
    const rows = sumOf(counts)
    const { rate, left } = measureRun({ rows, done, total, ms: clock() - start })
    const waits = waitsFor()
    const told = waits === undefined ? left : `${left} (${cleanText(waits)})`
    return { rows, rate, left: told, outcomes: `${describe(counts)}${cleanText(awaited?.text() ?? '')}` }
  }
  const printer =
    stream.isTTY === true && total !== undefined
      ? openBar(stream, () => barOf({ ...facts(), total }, stream.columns || COLUMNS))
      : openLines(stream, clock, everyMs, () => lineOf(facts(), total))
  return {
    update(next) {
      counts = { ...next }
      printer.update()
    },
    stop() {
      printer.stop()
      awaited?.stop()
    },
  }
}

function openLines(stream: NodeJS.WriteStream, clock: Clock, everyMs: number, text: () => string): Printer {
  let lineAt = clock()
  const print = () => {
    lineAt = clock()
    stream.write(`${text()}\n`)
  }
  const update = () => {
    if (clock() - lineAt >= everyMs) print()
  }
  // A timer, because a line is due even when no row is answered.
  const ticking = setInterval(update, everyMs)
  ticking.unref()
  return {
    update,
    stop() {
      clearInterval(ticking)
      print()
    },
  }
}

/** The width of a terminal that doesn't report its width. */
const COLUMNS = 80
const HIDE_CURSOR = '\u001b[?25l'
const SHOW_CURSOR = '\u001b[?25h'
const CLEAR_BELOW = '\u001b[J'

/** A bar, drawn at most five times a second. If somebody else writes a message, the bar is drawn again below it. */
function openBar(stream: NodeJS.WriteStream, text: () => string): Printer {
  let drawn = ''
  const draw = () => {
    drawn = text()
    stream.write(`\r${drawn}${CLEAR_BELOW}`)
  }
  // A terminal that became narrower has wrapped the line that was drawn for the old width.
  const redraw = () => {
    const above = Math.ceil(drawn.length / (stream.columns || COLUMNS)) - 1
    if (above > 0) stream.write(`\u001b[${above}A`)
    draw()
  }
  // If the process ends while the bar is shown, the terminal's cursor is restored.
  const restore = () => stream.write(SHOW_CURSOR)
  process.once('exit', restore)
  stream.on('resize', redraw)
  stream.write(HIDE_CURSOR)
  draw()
  const drawing = setInterval(draw, DRAW_MS)
  drawing.unref()
  return {
    update() {},
    stop() {
      clearInterval(drawing)
      process.off('exit', restore)
      stream.off('resize', redraw)
      draw()
      stream.write(`\n${SHOW_CURSOR}`)
    },
  }
}

interface RunFacts {
  rows: number
  rate: number
  /** The estimated remaining time. */
  left: string
  outcomes: string
}

interface BarFacts extends RunFacts {
  total: number
}

const BAR_MIN = 10
const BAR_MAX = 40

/** The bar's text: at most `columns - 1` characters, because some terminals begin a new line when a line is full. */
export function barOf({ rows, total, rate, left, outcomes }: BarFacts, columns: number): string {
  const share = total === 0 ? 1 : Math.min(rows / total, 1)
  const percent = `${Math.floor(share * 100)}%`
  // If not all pieces fit, the last ones are left out first.
  const pieces = [`${rows}/${total} rows`, `ETA ${left}`, `${rate} rows/s`, outcomes]
  const room = columns - 1
  for (let kept = pieces.length; kept > 0; kept -= 1) {
    const text = [percent, ...pieces.slice(0, kept)].join(' | ')
    const size = Math.min(BAR_MAX, room - text.length - 2)
    if (size >= BAR_MIN) return ` ${drawn(share, size)} ${text}`
  }
  return [percent, pieces[0]].join(' | ').slice(0, Math.max(room, 0))
}

function drawn(share: number, size: number): string {
  const full = Math.floor(share * size)
  return '█'.repeat(full) + '░'.repeat(size - full)
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

function lineOf({ rows, rate, left, outcomes }: RunFacts, total: number | undefined): string {
  const of = total === undefined ? '' : ` of ${total}`
  return `${rows}${of} rows, ${rate} rows/s, ETA ${left}: ${outcomes}`
}

/** `created 9200, rejected 250`: outcomes without rows are left out. */
function describe(counts: Counts): string {
  const named = OUTCOMES.filter(name => counts[name] > 0).map(name => `${name.toLowerCase()} ${counts[name]}`)
  return named.length === 0 ? 'none yet' : named.join(', ')
}

export function duration(seconds: number): string {
  if (seconds < 60) return `${seconds} s`
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`
  return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`
}

export interface Awaited {
  /** For the end of a progress line: `; waits since 12:03:05 for …`, or nothing. */
  text(): string
  stop(): void
}

interface AwaitedDeps {
  queues: Pick<Queues, 'on' | 'trouble'>
  client: { heldUpBy(): Promise<FaultCode | undefined> }
  clock: Clock
  /** How often the oldest job is looked at, in ms. */
  everyMs?: number
}

const EVERY_MS = 5_000

export function watchAwaited({ queues, client, clock, everyMs = EVERY_MS }: AwaitedDeps): Awaited {
  let awaySince: number | undefined
  let held: { code: FaultCode; since: number } | undefined
  let looking = false
  queues.on('away', () => {
    awaySince ??= clock()
  })
  queues.on('back', () => {
    awaySince = undefined
  })
  const look = async () => {
    if (looking) return
    looking = true
    const code = await client.heldUpBy().catch(() => held?.code)
    held = code && { code, since: held?.code === code ? held.since : clock() }
    looking = false
  }
  const timer = setInterval(look, everyMs).unref()

  function reason(): { since: number; what: string } | undefined {
    const trouble = queues.trouble()
    if (trouble) return { since: trouble.since, what: trouble.says }
    if (awaySince !== undefined) return { since: awaySince, what: 'the queue server, which does not answer' }
    return held && { since: held.since, what: `workers: ${FAULTS[held.code].text}` }
  }
  return {
    text() {
      const found = reason()
      return found ? `; waits since ${new Date(found.since).toISOString().slice(11, 19)} UTC for ${found.what}` : ''
    },
    stop: () => clearInterval(timer),
  }
}
