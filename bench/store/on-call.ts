// `node bin/launch.mjs bench/store/on-call.ts [--receipts 10000000] [--batches 100000]`: how long the look-ups of `explain`,
// of the console's page Explain and of `batch list` take in a store of that size. The goal is under 50 ms each, without the start of the process. Every
// look-up runs on a new connection, as in a command, and again on the same connection. On a busy machine the times mean
// little, because a new connection first reads the catalogue entries of all partitions.
import { parseArgs } from 'node:util'
import pg from 'pg'
import { readerOf } from '../../producers/console/explain/reader.ts'
import { explain, findJobs } from '../../producers/operate/explain.ts'
import { wholeReader } from '../../producers/operate/whole-reader.ts'
import { BATCH_STATES } from '../../src/job/choices.ts'
import { CATALOGUE } from '../../src/job/composition.ts'
import { receiptId } from '../../src/job/envelope/ids.ts'
import * as batchList from '../../src/store/batch/batch-list.ts'
import { WHOLE_BATCH } from '../../src/store/batch/batch-row.ts'
import { openStore, type Store } from '../../src/store/pool.ts'
import { ALL, sightOf } from '../../src/store/sight.ts'
import type { Installation } from '../../test/support/installation.ts'
import { openPlace } from '../place.ts'
import { CLIENTS, fillJobs, runOn } from './fill-jobs.ts'

const { values } = parseArgs({
  options: {
    receipts: { type: 'string', default: '10000000' },
    batches: { type: 'string', default: '100000' },
    samples: { type: 'string', default: '40' },
  },
})
const RECEIPTS = Number(values.receipts)
const BATCHES = Number(values.batches)
const SAMPLES = Number(values.samples)
interface Asked {
  name: string
  ask: (store: Store, n: number) => Promise<number>
}

function questions({ queues }: Installation, clients: readonly string[], now: number): Asked[] {
  const sources = { queues, catalogue: CATALOGUE, now }
  const clientOf = (n: number) => clients[n % clients.length] ?? ''
  const explained = async (store: Store, what: string) =>
    (await explain({ what }, { reader: wholeReader({ store, ...sources }), ...sources })).jobs.length
  const sourcesOf = (store: Store) => ({ reader: readerOf(sightOf(null), { store, ...sources }), ...sources })
  const searched = async (store: Store, what: string) => (await findJobs({ what }, sourcesOf(store))).jobs.length
  const shown = async (store: Store, what: string) => (await explain({ what }, sourcesOf(store))).jobs.length
  const listed = (store: Store, filter: batchList.ListFilter) =>
    batchList.list(ALL, store, { ...filter, order: 'newest', limit: 50, now }, WHOLE_BATCH)
  return [
    { name: 'explain RECEIPT', ask: (store, n) => explained(store, receiptId(clientOf(n), `asked-${n}`)) },
    { name: 'explain JTI', ask: (store, n) => explained(store, `asked-${n}`) },
    { name: 'explain REFERENCE', ask: (store, n) => explained(store, `asked for ${n}`) },
    { name: 'console: search JTI', ask: (store, n) => searched(store, `asked-${n}`) },
    { name: 'console: search REFERENCE', ask: (store, n) => searched(store, `asked for ${n}`) },
    { name: 'console: search nothing', ask: (store, n) => searched(store, `nobody ${n}`) },
    { name: 'console: one job', ask: (store, n) => shown(store, receiptId(clientOf(n), `asked-${n}`)) },
    { name: 'batch list', ask: async store => (await listed(store, {})).length },
    {
      name: 'batch list --client',
      ask: async (store, n) => (await listed(store, { clientId: clientOf(n) })).length,
    },
    ...BATCH_STATES.map(is => ({
      name: `batch list --state ${is}`,
      ask: async (store: Store) => (await listed(store, { state: is })).length,
    })),
  ]
}

async function measure({ name, ask }: Asked, open: () => Store): Promise<void> {
  const took = { first: [] as number[], again: [] as number[] }
  let found = 0
  for (let n = 0; n < SAMPLES; n += 1) {
    const store = open()
    await store.query({ text: 'select 1' })
    for (const turn of ['first', 'again'] as const) {
      const began = performance.now()
      found = await ask(store, n)
      took[turn].push(performance.now() - began)
    }
    await store.close()
  }
  const at = (all: number[], part: number) =>
    (all.toSorted((a, b) => a - b)[Math.floor(all.length * part)] ?? 0).toFixed(1)
  const shown = (['first', 'again'] as const).map(
    turn => `${turn}: p50 ${at(took[turn], 0.5)} ms, p95 ${at(took[turn], 0.95)} ms`,
  )
  process.stdout.write(`${name.padEnd(28)} ${shown.join('; ')}; ${found} found\n`)
}

const place = await openPlace()
try {
  const installation = await place.open('redis')
  for (let n = 1; n < CLIENTS; n += 1) await installation.addClient(`client-${n}`)
  const { vault, session } = installation
  const db = new pg.Client({ connectionString: vault.database.url })
  await db.connect()
  const { rows } = await db.query<{ client_id: string }>(
    'select client_id from tokenmill.client where not system order by client_id',
  )
  const clients = rows.map(row => row.client_id)
  const now = Date.now()
  await fillJobs(runOn(db), { batches: BATCHES, receipts: RECEIPTS, asked: SAMPLES, now })
  const size = await db.query<{ size: string }>('select pg_size_pretty(pg_database_size(current_database())) as size')
  process.stdout.write(`${RECEIPTS} receipts, ${BATCHES} batches, ${size.rows[0]?.size}\n`)
  await db.end()
  const open = () =>
    openStore(vault.database.url, { log: session.log, connectionsMax: 1, application: 'tokenmill cli' })
  for (const asked of questions(installation, clients, now)) await measure(asked, open)
  await installation.close()
} finally {
  await place.close()
}
