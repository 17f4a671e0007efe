// `npm run bench`: measures each case and its reference in the same run on the same machine; only the ratios count.
// `npm run bench -- --rows 1000000` sets the size, `--engine redis` selects one engine.
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { writeSample } from '../producers/migrate/sample.ts'
import type { Installation } from '../test/support/installation.ts'
import { runBare } from './bare.ts'
import { runDecrypt } from './decrypt.ts'
import { writeEncrypted } from './encrypted.ts'
import { runMigrate } from './migrate.ts'
import { runNaive } from './naive.ts'
import { type EngineName, openPlace, type Place } from './place.ts'
import type { PutRun } from './put.ts'
import { runSchemeBatch, type SchemeRunOptions } from './scheme-batch.ts'
import { type BesideRun, putAlone, putBesideMigration, putBesideSubmit } from './single/beside.ts'
import { runHops } from './single/hops.ts'
import { runPuts } from './single/puts.ts'
import { runLifecycle, runSingle } from './single/run.ts'

/** Fewer single jobs would measure the start of the processes most of all: each costs some 3 s of processor time. */
const SINGLES_MAX = 20_000
const ENCRYPTED_MAX = 100_000

interface Line {
  case: string
  engine: string
  rows: number
  perSecond: number
  limit: string
  limitPerSecond: number
  ratio: number
  [more: string]: unknown
}

const { values } = parseArgs({
  options: {
    rows: { type: 'string', default: '200000' },
    engine: { type: 'string' },
    cases: { type: 'string', default: 'abc' },
  },
})
const rows = Number(values.rows)
const engines = (values.engine ? [values.engine] : ['redis', 'postgres']) as EngineName[]

const lines: Line[] = []
const place = await openPlace()
try {
  for (const engine of engines) {
    if (values.cases.includes('a')) lines.push(...(await wholeFile(place, engine)))
    if (values.cases.includes('b')) lines.push(await encryptedFile(place, engine))
    if (values.cases.includes('c')) lines.push(await singleJobs(place, engine))
    if (values.cases.includes('j') && engine === 'redis') lines.push(await lifecycleJobs(place, engine))
    if (values.cases.includes('l')) lines.push(await putRate(place, engine))
    if (values.cases.includes('f')) await putCards('f: PUT, idle', engine, putAlone)
    if (values.cases.includes('g')) {
      const file = join(place.dir, `beside-${engine}.csv`)
      await putCards('g: PUT beside a migration', engine, installation => putBesideMigration(installation, file))
    }
    if (values.cases.includes('k')) {
      const file = join(place.dir, `beside-${engine}.ndjson`)
      await putCards('k: PUT beside submitted creates', engine, installation => putBesideSubmit(installation, file))
    }
    if (values.cases.includes('h')) await schemeTokens('h: scheme tokens', place, engine, 2)
    if (values.cases.includes('i')) await schemeTokens('i: scheme tokens, one process busy', place, engine, 1)
  }
} finally {
  await place.close()
}
if (lines.length > 0) print(lines)

/** Runs a case of PUTs on an installation of its own. */
async function putCards(name: string, engine: EngineName, run: (installation: Installation) => Promise<PutRun>) {
  const installation = await place.open(engine)
  try {
    const { requests, p50, p99, others, besidePerSecond } = (await run(installation)) as PutRun & Partial<BesideRun>
    const beside = besidePerSecond === undefined ? '' : `, ${Math.round(besidePerSecond)} cards/s beside`
    const text = `${requests} PUTs, p50 ${p50} ms, p99 ${p99} ms, not 200: ${others}${beside}`
    process.stdout.write(`${name} (${engine}): ${text}\n`)
  } finally {
    await installation.close()
  }
}

/** (h) and (i): how much of a granted rate a batch uses, and how long single jobs wait beside it. */
async function schemeTokens(name: string, where: Place, engine: EngineName, busy: SchemeRunOptions['busy']) {
  const asked = { cards: Math.min(rows, 10_000), rate: 200, latencyMs: 20, busy }
  const { seconds, callsPerSecond, used, turnedAway, interactive, others, cardsWithSeveralTokens } =
    await runSchemeBatch(where, engine, asked)
  const percent = (part: number) => `${(part * 100).toFixed(2)} %`
  const { jobs, p50, p99, most } = interactive
  process.stdout.write(
    `${name} (${engine}): ${asked.cards} cards in ${seconds.toFixed(1)} s, ${callsPerSecond.toFixed(1)} calls/s, ` +
      `${percent(used)} of the rate, turned away ${percent(turnedAway)}; ${jobs} single jobs, p50 ${p50} ms, p99 ${p99} ms, ` +
      `most ${most} ms; not provisioned: ${others}, cards with several tokens: ${cardsWithSeveralTokens}\n`,
  )
}

/** (a), compared with (d), which is measured before and after it, and with the naive way. */
async function wholeFile(where: Place, engine: EngineName): Promise<Line[]> {
  const file = join(where.dir, `cards-${engine}.csv`)
  await writeSample(file, { rows, seed: 1, now: Date.now() })
  const bare = async () => {
    const installation = await where.open(engine)
    return runBare(installation, rows).finally(installation.close)
  }
  const before = await bare()
  const installation = await where.open(engine)
  const run = await runMigrate(installation, file).finally(installation.close)
  const after = await bare()
  const limitPerSecond = (before.perSecond + after.perSecond) / 2
  const { perSecond, residentMiB } = run
  const line: Line = {
    case: 'a: migrate, whole file',
    engine,
    rows,
    perSecond,
    limit: 'd: bare loop',
    limitPerSecond,
    ratio: perSecond / limitPerSecond,
    residentMiB,
  }
  if (engine !== 'redis') return [line]
  const naive = async (jobs: number, concurrency: number): Promise<Line> => {
    const other = await where.open(engine)
    const { perSecond: limit } = await runNaive(other, Math.min(rows, jobs), concurrency).finally(other.close)
    return {
      ...line,
      limit: `one job and INSERT a card, ${concurrency} at once`,
      limitPerSecond: limit,
      ratio: perSecond / limit,
    }
  }
  return [line, await naive(5_000, 1), await naive(20_000, 20)]
}

async function encryptedFile(where: Place, engine: EngineName): Promise<Line> {
  const installation = await where.open(engine)
  const size = Math.min(rows, ENCRYPTED_MAX)
  const file = join(where.dir, `encrypted-${engine}.csv`)
  await writeEncrypted(file, size, installation)
  const before = await runDecrypt()
  const { perSecond } = await runMigrate(installation, file).finally(installation.close)
  const after = await runDecrypt()
  const limitPerSecond = (before.perSecond + after.perSecond) / 2
  return {
    case: 'b: migrate, a JWE a row',
    engine,
    rows: size,
    perSecond,
    limit: `e: RSA-2048, ${availableParallelism()} cores`,
    limitPerSecond,
    ratio: perSecond / limitPerSecond,
  }
}

async function singleJobs(where: Place, engine: EngineName): Promise<Line> {
  const installation = await where.open(engine)
  const { rows: size, ...run } = await runSingle(installation, Math.min(rows, SINGLES_MAX)).finally(installation.close)
  const { perSecond: limitPerSecond } = await runDecrypt()
  return {
    case: 'c: token-create, one by one',
    engine,
    rows: size,
    ...run,
    limit: `e: RSA-2048, ${availableParallelism()} cores`,
    limitPerSecond,
    ratio: run.perSecond / limitPerSecond,
  }
}

async function putRate(where: Place, engine: EngineName): Promise<Line> {
  const size = Math.min(rows, SINGLES_MAX)
  const installation = await where.open(engine)
  const { rows: _, ...run } = await runPuts(installation, size).finally(installation.close)
  const other = await where.open(engine)
  const { perSecond: limitPerSecond } = await runSingle(other, size).finally(other.close)
  return {
    case: 'l: PUT, 50 connections',
    engine,
    rows: size,
    ...run,
    limit: 'c: token-create, one by one',
    limitPerSecond,
    ratio: run.perSecond / limitPerSecond,
  }
}

async function lifecycleJobs(where: Place, engine: EngineName): Promise<Line> {
  const installation = await where.open(engine)
  const { rows: size, ...run } = await runLifecycle(installation, Math.min(rows, SINGLES_MAX)).finally(
    installation.close,
  )
  const other = await where.open(engine)
  const hops = await runHops(other, size * 2).finally(other.close)
  return {
    case: 'j: token-lifecycle, one by one',
    engine,
    rows: size,
    ...run,
    limit: 'two hops with nothing done in them',
    limitPerSecond: hops.perSecond,
    limitProcessor: hops.processor,
    ratio: run.perSecond / hops.perSecond,
  }
}

function print(all: readonly Line[]): void {
  const cells = all.map(line => [
    line.case,
    line.engine,
    String(line.rows),
    line.perSecond.toFixed(0),
    line.limit,
    line.limitPerSecond.toFixed(0),
    line.ratio.toFixed(2),
  ])
  const table = [['case', 'engine', 'rows', 'cards/s', 'beside', 'its /s', 'ratio'], ...cells]
  const widths = table[0]?.map((_, column) => Math.max(...table.map(row => row[column]?.length ?? 0))) ?? []
  for (const row of table)
    console.log(
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
  for (const line of all) console.log(JSON.stringify(line))
}
