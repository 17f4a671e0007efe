// What a card, a single job, a PUT, a line of the ledger and a line of a report cost in processor time, WAL, disk and Redis
// memory, in stores of several sizes and with several worker processes; and a model that tells the rate of cards from these
// costs. `node bin/launch.mjs bench/store/capacity.ts [--tokens 100000,1000000,10000000] [--processes 1,2,4] [--rows 200000]`
// It needs Linux, and a machine that does nothing else. Each line of its output is JSON; `us` is processor time per piece.
import { connect } from 'node:net'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { writeSample } from '../../bin/sample/cards.ts'
import { DAY, fillLedger } from '../../test/report/ledger.ts'
import { ENTITY, type Installation } from '../../test/support/installation.ts'
import { migrateFile } from '../migrate.ts'
import { openPlace, type Place } from '../place.ts'
import { type ProcessorTime, watchProcessor } from '../single/processor.ts'
import { runPuts } from '../single/puts.ts'
import { runLifecycle, runSingle } from '../single/run.ts'
import { writeTransactions } from '../soak/ingest.ts'
import { runCommand } from '../soak/run.ts'
import { fillStatements } from './fill.ts'

const { values } = parseArgs({
  options: {
    tokens: { type: 'string', default: '100000,1000000,10000000' },
    processes: { type: 'string', default: '1,2,4' },
    rows: { type: 'string', default: '200000' },
    singles: { type: 'string', default: '20000' },
    lines: { type: 'string', default: '200000' },
  },
})
/** How often Redis is asked for its memory. */
const EVERY_MS = 200
const numbers = (text: string) => text.split(',').map(Number)
const rows = Number(values.rows)

/** What a piece of work costs. */
interface Cost {
  perSecond: number
  us: ProcessorTime
  /** Bytes per piece. */
  wal: number
  disk: number
  /** By how many KiB Redis's memory grew at most during the run, for all pieces together. */
  redisKiB: number
}

const say = (line: object) => process.stdout.write(`${JSON.stringify(line)}\n`)

const place = await openPlace()
try {
  await cards(place)
  await singles(place)
  await ledger(place)
  await report(place)
} finally {
  await place.close()
}

/** Migrates files into one store that grows, and prints the model's rate beside each measured one. */
async function cards(where: Place): Promise<void> {
  const installation = await where.open('redis')
  let tokens = 0
  let seed = 0
  for (const size of numbers(values.tokens)) {
    await fill(installation, tokens, size)
    tokens = size
    for (const processes of numbers(values.processes)) {
      seed += 1
      const file = join(where.dir, `${seed}.csv`)
      await writeSample(file, { rows, seed, now: Date.now() })
      const workers = await installation.startWorkers({ processes, roles: ['bulk'] })
      const cost = await costOf(installation, rows, () => migrateFile(installation, file))
      await workers.close()
      say({ piece: 'card', tokens, processes, ...cost, model: modelOf(cost.us, processes) })
    }
  }
  await installation.close()
}

/** A store that grew over months has been vacuumed and checkpointed since; what is left of that isn't measured with the cards. */
async function fill({ vault, scope }: Installation, from: number, to: number): Promise<void> {
  const statements = [...fillStatements(scope, from, to), 'vacuum (analyze)', 'checkpoint']
  for (const text of statements) await vault.store.query({ text })
}

/**
 * Cards per second: the processes that are busiest set the rate, or all cores together. A worker process and the command use
 * one core each.
 */
function modelOf({ command = 0, workers = 0, PostgreSQL = 0, Redis = 0 }: ProcessorTime, processes: number): number {
  const cores = availableParallelism()
  const us = Math.max(command, workers / processes, Redis, (command + workers + PostgreSQL + Redis) / cores)
  return Math.round(1e6 / us)
}

/** Single jobs through the client library, and PUTs through the gateway, whose cost contains their sender's (`bench`). */
async function singles(where: Place): Promise<void> {
  const count = Number(values.singles)
  for (const [piece, run] of [
    ['create', runSingle],
    ['create and suspension', runLifecycle],
    ['PUT', runPuts],
  ] as const) {
    const installation = await where.open('redis')
    say({ piece, ...(await costOf(installation, count, () => run(installation, count))) })
    await installation.close()
  }
}

async function ledger(where: Place): Promise<void> {
  const count = Number(values.lines)
  const file = join(where.dir, 'transactions.csv')
  await writeTransactions(file, count)
  const installation = await where.open('redis')
  await installation.startWorkers({ processes: availableParallelism(), roles: ['bulk'] })
  const ingest = async () => {
    const { summary } = await runCommand(installation, ['ingest', 'transactions', file])
    return { perSecond: (count * 1000) / Number(summary['ms']) }
  }
  say({ piece: 'ledger line', ...(await costOf(installation, count, ingest)) })
  await installation.close()
}

/** A settlement report as CSV. */
async function report(where: Place): Promise<void> {
  const count = Number(values.lines)
  const installation = await where.open('redis')
  const { store } = installation.vault
  await fillLedger(store, ENTITY, count)
  await installation.startWorkers({ roles: ['bulk'] })
  const client = await installation.connect()
  const request = {
    report_type: 'MERCHANT_SETTLEMENT_REPORT',
    entity_id: ENTITY,
    mime_type: 'text/csv',
    parameters: { clearingDate: DAY },
  }
  const ask = async () => {
    const began = performance.now()
    const { status } = await client.call('report', request, { timeoutMs: 600_000 })
    if (status !== 'SUCCEEDED') throw new Error(`the report ended with ${status}`)
    return { perSecond: (count * 1000) / (performance.now() - began) }
  }
  say({ piece: 'report line', ...(await costOf(installation, count, ask)) })
  await installation.close()
}

/** `work` returns the processor time itself if it does more than what is measured, as starting the workers. */
async function costOf(
  installation: Installation,
  pieces: number,
  work: () => Promise<{ perSecond: number; processor?: ProcessorTime }>,
): Promise<Cost> {
  const used = await sizesOf(installation)
  const processor = await watchProcessor(installation)
  const redis = watchRedis(installation)
  const done = await work()
  const us = done.processor ?? processor(pieces)
  const redisKiB = await redis()
  const now = await sizesOf(installation)
  return {
    perSecond: Math.round(done.perSecond),
    us,
    redisKiB,
    wal: Math.round((now.wal - used.wal) / pieces),
    disk: Math.round((now.disk - used.disk) / pieces),
  }
}

async function sizesOf({ vault }: Installation): Promise<{ wal: number; disk: number }> {
  const { rows: found } = await vault.store.query<{ wal: number; disk: number }>({
    text: `select (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint as wal,
  (select sum(pg_total_relation_size(oid))::bigint from pg_class where relnamespace = 'tokenmill'::regnamespace and relkind = 'r')
    as disk`,
  })
  return found[0] ?? { wal: 0, disk: 0 }
}

/** Returns a function that tells by how much Redis's memory grew at most, in KiB. */
function watchRedis({ env }: Installation): () => Promise<number> {
  const url = new URL(String(env['REDIS_URL']))
  const socket = connect(Number(url.port), url.hostname)
  const seen: number[] = []
  socket.setEncoding('utf8').on('data', text => {
    const bytes = /used_memory:(\d+)/.exec(String(text))?.[1]
    if (bytes !== undefined) seen.push(Number(bytes))
  })
  // After a failure Redis ends before this socket is closed.
  socket.on('error', () => undefined)
  const ask = () => socket.write('INFO memory\r\n')
  ask()
  const timer = setInterval(ask, EVERY_MS).unref()
  return async () => {
    clearInterval(timer)
    socket.destroy()
    return Math.round((Math.max(...seen) - (seen[0] ?? 0)) / 1024)
  }
}
