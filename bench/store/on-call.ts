// `node bin/launch.mjs bench/store/on-call.ts [--receipts 10000000] [--batches 100000]`: how long the look-ups of `explain`,
// of the console's page Explain and of `batch list` take in a store of that size. The goal is under 50 ms each, without the start of the process. Every
// look-up runs on a new connection, as in a command, and again on the same connection. On a busy machine the times mean
// little, because a new connection first reads the catalogue entries of all partitions.
import { parseArgs } from 'node:util'
import pg from 'pg'
import { readerOf } from '../../producers/console/explain/reader.ts'
import { explain, findJobs } from '../../producers/operate/explain.ts'
import { wholeReader } from '../../producers/operate/whole-reader.ts'
import { receiptId } from '../../src/job/envelope/ids.ts'
import * as batchList from '../../src/store/batch/batch-list.ts'
import { BATCH_STATES } from '../../src/store/batch/batch-state.ts'
import { sightOf } from '../../src/store/console/sight.ts'
import { openStore, type Store } from '../../src/store/pool.ts'
import { partitionStatements } from '../../src/store/schema.ts'
import type { Installation } from '../../test/support/installation.ts'
import { openPlace } from '../place.ts'

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
const CLIENTS = 20
const DAYS = 88
const DAY_MS = 86_400_000
/** One receipt in five is a chunk's. */
const CHUNKS = Math.round(RECEIPTS / 5 / BATCHES)

const HEAD = `insert into tokenmill.receipt (receipt_id, day, client_id, iss, kind, jti, request_digest, envelope_digest, reference,
  status, code, outcome, token_id, batch_no, chunk, counts, outcomes, revision, attempt, accepted_at, completed_at)`
/** The indexes, as the migrations make them. */
const INDEXES = [
  {
    name: 'receipt_of_batch',
    definition: 'create index receipt_of_batch on tokenmill.receipt (batch_no, chunk) where batch_no is not null',
  },
  {
    name: 'receipt_of_reference',
    definition:
      'create index receipt_of_reference on tokenmill.receipt (reference) where reference is not null and batch_no is null',
  },
  {
    name: 'receipt_of_token',
    definition:
      'create index receipt_of_token on tokenmill.receipt (token_id) where token_id is not null and batch_no is null',
  },
]

type Run = (text: string, values?: unknown[]) => Promise<unknown>

async function fill(run: Run, clients: readonly string[], now: number): Promise<void> {
  for (let week = 0; week <= DAYS + 7; week += 7)
    for (const text of partitionStatements(now - week * DAY_MS)) await run(text)
  const age = `now() - random() * interval '${DAYS} days'`
  await run(
    `insert into tokenmill.batch (client_id, batch_id, record_kind, chunk_records, layout, accepted_at, created_at, active_at, summed_at,
  extent_chunks, extent_rows, source_name, chunks_done, rows_done, counts, revision, finished_at, paused_at)
select ($1::text[])[1 + n % $2::int], 'm-' || md5(n::text), 'token-create', 500, '{}', at, at, case when n % 50 = 0 then now() else at end, at,
  case when n % 500 = 0 then null else $3::int end, case when n % 500 = 0 then null else $3::int * 500 end, 'cards-' || n || '.csv',
  case when n % 50 = 0 then 1 else $3::int end, $3::int * 500, '{"CREATED":9990,"REJECTED":10}',
  case when n % 50 = 0 then 0 else 1 end, case when n % 50 = 0 then null else at end, case when n % 1000 = 0 then at end
from (select n, ${age} as at from generate_series(1, $4::int) as n) as made`,
    [clients, CLIENTS, CHUNKS, BATCHES],
  )
  // To build the indexes at the end takes less time than to extend them with each row.
  for (const { name } of INDEXES) await run(`drop index tokenmill.${name}`)
  const singles = RECEIPTS - CHUNKS * BATCHES
  const days = DAYS + 1
  for (let day = 0; day < days; day += 1) {
    const [from, to] = [day, day + 1].map(n => Math.round((singles / days) * n))
    await run(
      `${HEAD} select gen_random_uuid(), at::date, ($1::text[])[1 + n % ${CLIENTS}], 'gateway', 'token-create', 'put-' || gen_random_uuid(),
  $4::bytea, $4::bytea, 'order-' || n, 'SUCCEEDED', 200, 'CREATED', gen_random_uuid(), null, null, null, null, 1, 1, at, at
from (select n, now() - (random() + ${day}) * interval '1 day' as at from generate_series($2::int + 1, $3::int) as n) as made`,
      [clients, from, to, Buffer.alloc(32, 1)],
    )
    process.stderr.write(`\r${to} single receipts`)
  }
  for (let day = 0; day < days; day += 1) {
    await run(
      `${HEAD} select gen_random_uuid(), b.created_at::date, b.client_id, b.client_id, 'token-batch', b.batch_id || '-' || c,
  $2::bytea, $2::bytea, null, 'SUCCEEDED', 200, null, null, b.batch_no, c, '{"CREATED":499,"REJECTED":1}',
  '[[' || c * 500 + 2 || ',"row-' || c || '","C"]]', 1, 1, b.created_at, b.created_at
from tokenmill.batch as b cross join generate_series(0, $1::int - 1) as c
where b.created_at::date = current_date - $3::int`,
      [CHUNKS, Buffer.alloc(32, 1), day],
    )
    process.stderr.write(`\rchunks of day ${day}            `)
  }
  for (const { definition } of INDEXES) await run(definition)
  // Receipts that are looked up have ids computed from client and jti, and were published recently.
  for (let n = 0; n < SAMPLES; n += 1) {
    const [clientId = ''] = clients.slice(n % clients.length)
    const id = receiptId(clientId, `asked-${n}`)
    await run(
      `${HEAD} select $1, at::date, $2, $2, 'token-create', $3, '\\x00', '\\x00', $4, 'SUCCEEDED', 200, 'CREATED', gen_random_uuid(), null, null, null,
  null, 1, 1, at, at from (select ${age} as at) as made`,
      [id, clientId, `asked-${n}`, `asked for ${n}`],
    )
  }
  await run(
    `insert into tokenmill.outbox (day, client_id, result_id, receipt_id, revision, state, created_at)
select at::date, ($1::text[])[1 + n % ${CLIENTS}], gen_random_uuid(), gen_random_uuid(), 1, 'SENT', at
from (select n, now() - random() * interval '6 days' as at from generate_series(1, ${Math.round(RECEIPTS / 20)}) as n) as made`,
    [clients],
  )
  await run(
    'insert into tokenmill.receipt_key (receipt_id, day, revision) select receipt_id, day, revision from tokenmill.receipt',
  )
  await run('vacuum (analyze) tokenmill.receipt_key')
  await run('vacuum (analyze) tokenmill.receipt')
  await run('vacuum (analyze) tokenmill.batch')
  await run('vacuum (analyze) tokenmill.outbox')
  process.stderr.write('\n')
}

interface Asked {
  name: string
  ask: (store: Store, n: number) => Promise<number>
}

function questions({ queues }: Installation, clients: readonly string[], now: number): Asked[] {
  const clientOf = (n: number) => clients[n % clients.length] ?? ''
  const explained = async (store: Store, what: string) =>
    (await explain({ what }, { reader: wholeReader({ store, queues, now }), queues, now })).jobs.length
  const sourcesOf = (store: Store) => ({ reader: readerOf(sightOf(null), { store, queues, now }), queues, now })
  const searched = async (store: Store, what: string) => (await findJobs({ what }, sourcesOf(store))).jobs.length
  const shown = async (store: Store, what: string) => (await explain({ what }, sourcesOf(store))).jobs.length
  return [
    { name: 'explain RECEIPT', ask: (store, n) => explained(store, receiptId(clientOf(n), `asked-${n}`)) },
    { name: 'explain JTI', ask: (store, n) => explained(store, `asked-${n}`) },
    { name: 'explain REFERENCE', ask: (store, n) => explained(store, `asked for ${n}`) },
    { name: 'console: search JTI', ask: (store, n) => searched(store, `asked-${n}`) },
    { name: 'console: search REFERENCE', ask: (store, n) => searched(store, `asked for ${n}`) },
    { name: 'console: search nothing', ask: (store, n) => searched(store, `nobody ${n}`) },
    { name: 'console: one job', ask: (store, n) => shown(store, receiptId(clientOf(n), `asked-${n}`)) },
    { name: 'batch list', ask: async store => (await batchList.list(store, { limit: 50 })).length },
    {
      name: 'batch list --client',
      ask: async (store, n) => (await batchList.list(store, { clientId: clientOf(n), limit: 50 })).length,
    },
    ...BATCH_STATES.map(is => ({
      name: `batch list --state ${is}`,
      ask: async (store: Store) => (await batchList.list(store, { state: { is, now }, limit: 50 })).length,
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
  const { rows } = await db.query<{ client_id: string }>('select client_id from tokenmill.client order by client_id')
  const clients = rows.map(row => row.client_id)
  const now = Date.now()
  await fill((text, given) => db.query(text, given), clients, now)
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
