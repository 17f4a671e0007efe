// `--content NAMES`, `--content-file PROFILE FILE`: measures mixes, each in a process that also measures (d) and the base, so
// that a figure and what it is compared with are of the same minute. The processes of several runs, and of another checkout,
// alternate.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startScript } from '../../test/support/process.ts'
import type { EngineName } from '../place.ts'
import { readLines } from '../repeat/read-lines.ts'
import type { ContentLine } from './line.ts'
import { namedMixes } from './mixes.ts'
import { openPlans, type Plan } from './plan.ts'
import { printMixes, type Side } from './table.ts'

export interface ContentOptions {
  engines: readonly EngineName[]
  /** Names of mixes between commas. */
  names: string | undefined
  /** `profile`: a name, a file, or `none` for our own columns. */
  given: { profile: string; file: string } | undefined
  rows: number
  runs: number
  /** The other checkout. */
  against: string | undefined
}

const HERE = fileURLToPath(new URL('../..', import.meta.url))
const MEASURE = fileURLToPath(new URL('measure.ts', import.meta.url))

export async function runContent(options: ContentOptions): Promise<void> {
  const { names, runs, against } = options
  const mixes = names === undefined ? [] : namedMixes(names)
  const checkouts: { side: Side; dir: string }[] = [{ side: 'new', dir: HERE }]
  if (against !== undefined) checkouts.unshift({ side: 'old', dir: resolve(against) })
  const dir = await mkdtemp(join(tmpdir(), 'tokenmill-content-'))
  try {
    for (const plans of await writePlans(dir, mixes, options)) {
      const measured: { side: Side; line: ContentLine }[] = []
      for (let run = 1; run <= runs; run += 1)
        for (const plan of plans)
          for (const { side, dir: checkout } of checkouts) {
            process.stderr.write(`${plan.name} (${plan.engine}), run ${run} of ${runs}, ${side}\n`)
            const lines = await measure(checkout, plan, { dir, isOld: side === 'old' })
            measured.push(...lines.map(line => ({ side, line })))
          }
      printMixes(measured)
    }
  } finally {
    await rm(dir, { recursive: true, force: true })
  }
}

/** The plans of each engine. */
async function writePlans(
  dir: string,
  mixes: readonly string[],
  { engines, given, rows }: ContentOptions,
): Promise<Plan[][]> {
  const plans = openPlans(dir, rows)
  const written: Plan[][] = []
  for (const engine of engines) {
    const ofEngine: Plan[] = []
    for (const name of mixes) ofEngine.push(await plans.ofMix(name, engine))
    if (given) ofEngine.push(await plans.ofFile(given, engine))
    written.push(ofEngine)
  }
  return written
}

/** No line of an older checkout that can't measure the plan: it may lack an option of `migrate`. */
async function measure(
  checkout: string,
  plan: Plan,
  { dir, isOld }: { dir: string; isOld: boolean },
): Promise<ContentLine[]> {
  const planFile = join(dir, 'plan.json')
  await writeFile(planFile, JSON.stringify(plan))
  const child = startScript(join(checkout, 'bin', 'launch.mjs'), [MEASURE, planFile], { cwd: checkout })
  const { code } = await child.exit
  if (code === 0) return readLines(child.stdout()) as ContentLine[]
  const text = `the bench ended with ${code} in ${plan.name} of ${checkout}: ${child.stderr()}`
  if (!isOld) throw new Error(text)
  process.stderr.write(`${text}\n`)
  return []
}
