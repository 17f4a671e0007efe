// `--runs N`, `--against DIR`: runs each case several times, in alternation with another checkout of tokenmill, each time as
// a child process of that checkout's own bench. Prints medians, with the lowest and the highest in parentheses.
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startScript } from '../../test/support/process.ts'
import { type Line, printTable } from '../line.ts'
import { readLines } from './read-lines.ts'
import { spreadOf, textOf } from './spread.ts'

export interface RepeatOptions {
  engines: readonly string[]
  letters: readonly string[]
  runs: number
  /** The other checkout. */
  against: string | undefined
  rows: string
  tokens: string
}

interface Side {
  name: 'old' | 'new'
  dir: string
}

const HERE = fileURLToPath(new URL('../..', import.meta.url))
const LAUNCH = join('bin', 'launch.mjs')
/** Its bench of the ledger was a script until it became case (o). */
const LEDGER = join('bench', 'ingest.ts')

export async function repeat({ engines, letters, runs, against, rows, tokens }: RepeatOptions): Promise<void> {
  const old: Side[] = against === undefined ? [] : [{ name: 'old', dir: resolve(against) }]
  const sides: Side[] = [...old, { name: 'new', dir: HERE }]
  for (const engine of engines)
    for (const letter of letters) {
      const lines = { old: [] as Line[], new: [] as Line[] }
      for (let run = 1; run <= runs; run += 1)
        for (const side of sides) {
          process.stderr.write(`${letter} (${engine}), run ${run} of ${runs}, ${side.name}\n`)
          const sizes = ['--rows', rows, ...(letter === 'p' ? ['--tokens', tokens] : [])]
          lines[side.name].push(...(await runOnce(side, letter, ['--engine', engine, ...sizes])))
        }
      print(lines)
    }
}

/** An older checkout may lack the case: then it has no lines. */
async function runOnce({ name, dir }: Side, letter: string, args: readonly string[]): Promise<Line[]> {
  const words =
    letter === 'o' && existsSync(join(dir, LEDGER)) ? [LEDGER, ...args] : ['bench/main.ts', ...args, '--cases', letter]
  const child = startScript(join(dir, LAUNCH), words, { cwd: dir })
  const { code } = await child.exit
  if (code !== 0) {
    const text = `the ${name} bench ended with ${code} in case ${letter}: ${child.stderr()}`
    if (name === 'new') throw new Error(text)
    process.stderr.write(`${text}\n`)
  }
  return readLines(child.stdout()).filter(line => line.case.startsWith(letter))
}

/** One line for each reference and side, in a table and as JSON. */
function print({ old, new: ours }: Record<Side['name'], Line[]>): void {
  const references = [...new Set([...old, ...ours].map(({ limit }) => limit))]
  const found = references.flatMap(limit =>
    [
      { side: 'old', lines: old.filter(line => line.limit === limit) },
      { side: 'new', lines: ours.filter(line => line.limit === limit) },
    ].filter(({ lines }) => lines.length > 0),
  )
  const summaries = found.map(({ side, lines }) => summaryOf(side, lines))
  const head = ['side', 'case', 'engine', 'rows', 'runs', 'per second', 'beside', 'ratio', 'p50 ms', 'p99 ms', 'µs']
  printTable([
    head,
    ...summaries.map(one => [
      ...[one.side, one.case, one.engine, String(one.rows), String(one.runs), textOf(one.perSecond, 0)],
      ...[one.limit ?? '', textOf(one.ratio, 2), textOf(one.p50, 1), textOf(one.p99, 1), textOf(one.us, 1)],
    ]),
  ])
  // The references of one case share its figures.
  const details = summaries.flatMap(({ side, case: name, processor }) => {
    const parts = Object.entries(processor).map(([process, spread]) => `${process} ${textOf(spread, 1)}`)
    return parts.length > 0 ? [`${side}, ${name}, µs each: ${parts.join(', ')}`] : []
  })
  for (const detail of new Set(details)) console.log(detail)
  for (const summary of summaries) console.log(JSON.stringify(summary))
}

function summaryOf(side: string, lines: readonly Line[]) {
  const [first] = lines as [Line]
  const spread = (of: (line: Line) => number | undefined) => spreadOf(lines.flatMap(line => of(line) ?? []))
  const names = new Set(lines.flatMap(({ processor = {} }) => Object.keys(processor) as (keyof typeof processor)[]))
  const used = [...names].flatMap(name => {
    const one = spread(({ processor }) => processor?.[name])
    return one && one.highest > 0 ? [[name, one] as const] : []
  })
  const sumOf = ({ processor }: Line) => processor && Object.values(processor).reduce((sum, us) => sum + us, 0)
  const { case: name, engine, rows, limit } = first
  return {
    side,
    case: name,
    engine,
    rows,
    runs: lines.length,
    limit,
    perSecond: spread(line => line.perSecond),
    ratio: spread(line => line.ratio),
    p50: spread(line => line.p50),
    p99: spread(line => line.p99),
    /** Of all processes together. */
    us: spread(sumOf),
    processor: Object.fromEntries(used),
    residentMiB: lines.map(({ residentMiB }) => residentMiB).filter(one => one !== undefined),
  }
}
