// `node bench/ingest.ts`: measures `tokenmill ingest transactions` with a file of transactions, and for comparison a
// `COPY` of the same rows into the same table with the same months and indexes, before and after it on the same server.
// It also prints the processor time of each process per line, in µs. `--rows 1000000` for other sizes, `--engine
// postgres` for the other engine.
import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { ensureMonths } from '../src/store/ledger/ledger-months.ts'
import { CSV_HEADER, csvRowOf, transactionOf } from '../test/producers/ingest/sample.ts'
import { ENTITY, type Installation } from '../test/support/installation.ts'
import { startCommand } from '../test/support/process.ts'
import { copyFile } from './copy.ts'
import { type EngineName, openPlace } from './place.ts'
import { watchProcessor } from './single/processor.ts'

const { values } = parseArgs({
  options: {
    rows: { type: 'string', default: '200000' },
    engine: { type: 'string', default: 'redis' },
    chunk: { type: 'string' },
  },
})
const rows = Number(values.rows)
const engine = values.engine as EngineName
const DAYS = 60
const MONTHS = ['2026-01', '2026-02', '2026-03']

async function writeLines(path: string, lines: Iterable<string>): Promise<void> {
  const out = createWriteStream(path)
  let part = ''
  for (const line of lines) {
    part += `${line}\n`
    if (part.length < 1_000_000) continue
    if (!out.write(part)) await once(out, 'drain')
    part = ''
  }
  out.end(part)
  await once(out, 'finish')
}

function* sample(): Generator<ReturnType<typeof transactionOf>> {
  // The lines are in the order of their times, as if daily exports followed one another.
  for (let index = 0; index < rows; index += 1) {
    const at = Date.UTC(2026, 0, 1) + Math.floor((index / rows) * DAYS * 86_400) * 1000
    const made = transactionOf(index, { entity: ENTITY, days: DAYS })
    yield { ...made, created_at: new Date(at).toISOString().replace('.000Z', 'Z') }
  }
}

function* map<T>(items: Iterable<T>, change: (item: T) => string): Generator<string> {
  for (const item of items) yield change(item)
}

async function copy(open: () => Promise<Installation>, file: string): Promise<number> {
  const installation = await open()
  await ensureMonths(installation.vault.store, MONTHS)
  const statement = `copy tokenmill.transaction (${CSV_HEADER}, batch_no) from stdin (format csv)`
  const seconds = await copyFile(installation.vault.database.url, statement, file)
  await installation.close()
  return rows / seconds
}

const place = await openPlace()
try {
  const csv = join(place.dir, 'transactions.csv')
  const plain = join(place.dir, 'copy.csv')
  const header = (function* () {
    yield CSV_HEADER
    yield* map(sample(), csvRowOf)
  })()
  await writeLines(csv, header)
  await writeLines(
    plain,
    map(sample(), line => `${Object.values(line).join(',')},1`),
  )
  const open = () => place.open(engine)
  const before = await copy(open, plain)
  const installation = await open()
  await installation.startWorkers({ processes: availableParallelism(), roles: ['bulk'] })
  const chunk = values.chunk === undefined ? [] : ['--chunk', values.chunk]
  const processor = await watchProcessor(installation)
  const child = startCommand(['ingest', 'transactions', csv, '--client', installation.clientFile, '--json', ...chunk], {
    env: installation.env as Record<string, string>,
  })
  const { code } = await child.exit
  if (code !== 0) throw new Error(`ingest ended with ${code}: ${child.stderr()}`)
  const { ms, created } = JSON.parse(child.stdout()) as { ms: number; created: number }
  const processorUs = processor(created)
  await installation.close()
  const after = await copy(open, plain)
  const perSecond = (created * 1000) / ms
  const limitPerSecond = (before + after) / 2
  console.log(
    JSON.stringify({
      case: 'ingest transactions',
      engine,
      rows: created,
      perSecond: Math.round(perSecond),
      copyPerSecond: Math.round(limitPerSecond),
      ratio: Number((perSecond / limitPerSecond).toFixed(2)),
      processorUs,
    }),
  )
} finally {
  await place.close()
}
