// `node bin/launch.mjs bench/content/measure.ts PLAN.json`: measures a mix once, with the code of the checkout that is the
// working directory, and prints a line of JSON. So an older checkout, which has no mixes, is measured with the same files. Its
// own bench opens the servers and runs `migrate`.
import { readFile, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import type { Installation } from '../../test/support/installation.ts'
import type { MigrateRun } from '../migrate.ts'
import type { Place } from '../place.ts'
import { type FormCounts, formsOf, grownBy } from './forms.ts'
import type { ContentLine } from './line.ts'
import { MIXES } from './mixes.ts'
import type { Plan } from './plan.ts'

const HERE = fileURLToPath(new URL('../..', import.meta.url))
const CHECKOUT = process.cwd()

const load = (path: string) => import(pathToFileURL(join(CHECKOUT, path)).href)
const { openPlace }: typeof import('../place.ts') = await load('bench/place.ts')
const { runBare }: typeof import('../bare.ts') = await load('bench/bare.ts')
const { migrateFile, startBulkWorkers }: typeof import('../migrate.ts') = await load('bench/migrate.ts')
const { ENTITY }: typeof import('../../test/support/installation.ts') = await load('test/support/installation.ts')
const { startCommand }: typeof import('../../test/support/process.ts') = await load('test/support/process.ts')
if (typeof migrateFile !== 'function')
  throw new Error(`${CHECKOUT} is too old: its bench has no migrateFile, so no mix can be measured there`)

const plan = JSON.parse(await readFile(process.argv[2] ?? '', 'utf8')) as Plan
const place = await openPlace()
try {
  process.stdout.write(`${JSON.stringify(await measure(place))}\n`)
} finally {
  await place.close()
}

async function measure(where: Place): Promise<ContentLine> {
  const { name, engine, rows, base } = plan
  const isOwn = resolve(HERE) === resolve(CHECKOUT)
  const bare = () => onItsOwn(where, installation => runBare(installation, rows))
  const first = await bare()
  const baseRun = await onItsOwn(where, async installation => {
    const scope = await makeScope(installation)
    await startBulkWorkers(installation)
    return migrateInto(where, installation, base, ['--scope', scope], 'base')
  })
  const { run, forms, file } = await onItsOwn(where, installation => runMix(where, installation))
  const second = await bare()
  const naive =
    isOwn && engine === 'redis'
      ? await onItsOwn(where, async installation => {
          const { naiveOf } = await import('./naive.ts')
          return naiveOf(installation, { file, args: plan.args, rows: run.rows })
        })
      : undefined
  return {
    case: `content ${name}`,
    engine,
    rows: run.rows,
    perSecond: run.perSecond,
    processor: run.processor,
    residentMiB: run.residentMiB,
    basePerSecond: baseRun.perSecond,
    baseProcessor: baseRun.processor,
    barePerSecond: (first.perSecond + second.perSecond) / 2,
    naivePerSecond: naive?.perSecond,
    forms,
  }
}

/** Migrates the file before, which isn't measured, and then `file`. */
async function runMix(
  where: Place,
  installation: Installation,
): Promise<{ run: MigrateRun; forms: FormCounts | undefined; file: string }> {
  const { name, before, args } = plan
  const inScope = ['--scope', await makeScope(installation)]
  // Undefined in an older checkout.
  const workers = (await startBulkWorkers(installation)) as Awaited<ReturnType<typeof startBulkWorkers>> | undefined
  if (before) await migrateInto(where, installation, before.file, [...before.args, ...inScope], 'before')
  const file = MIXES[name]?.update ? await writeUpdates(where, name) : plan.file
  const counted = workers && (await formsOf(workers))
  const run = await migrateInto(where, installation, file, [...args, ...inScope], 'mix')
  return { run, forms: workers && counted && grownBy(await formsOf(workers), counted), file }
}

/** A scope that keeps billing addresses, which that of the bench's client doesn't. */
async function makeScope({ env }: Installation): Promise<string> {
  const child = startCommand(['scope', 'add', '--entity', ENTITY, '--keep-billing', '--json'], {
    env: env as Record<string, string>,
  })
  const { code } = await child.exit
  if (code !== 0) throw new Error(`scope add ended with ${code}: ${child.stderr()}`)
  return (JSON.parse(child.stdout()) as { token_scope: string }).token_scope
}

function resultsOf({ dir }: Place, name: string): string {
  return join(dir, `${name}.results.csv`)
}

function migrateInto(where: Place, installation: Installation, file: string, args: readonly string[], name: string) {
  const out = ['--results', resultsOf(where, name), '--manifest', join(where.dir, `${name}.manifest.json`)]
  return migrateFile(installation, file, [...args, ...out])
}

/** The file of a mix of updates: a row for each token of the results before. */
async function writeUpdates(where: Place, name: string): Promise<string> {
  const update = MIXES[name]?.update
  if (!update) throw new Error(`the mix ${name} updates nothing`)
  const [head = '', ...lines] = (await readFile(resultsOf(where, 'before'), 'utf8')).trimEnd().split('\n')
  const column = head.split(',').indexOf('reuse_token')
  const rows = lines.map((line, index) => update.lineAt(index, line.split(',')[column] ?? ''))
  const path = join(where.dir, 'updates.csv')
  await writeFile(path, `${[update.header, ...rows].join('\n')}\n`)
  return path
}

async function onItsOwn<T>(where: Place, work: (installation: Installation) => Promise<T>): Promise<T> {
  const installation = await where.open(plan.engine)
  return work(installation).finally(installation.close)
}
