// `node bin/launch.mjs bench/store/receipts.ts [--jobs 3000]`: how long the store takes to look for the receipt of a new job,
// to write it, and to find it again, with one weekly partition and with 21 (Linux). One job after the other, on one
// connection.
import { randomBytes, randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { parseArgs } from 'node:util'
import pg from 'pg'
import { openLog } from '../../src/log.ts'
import type { NewReceipt } from '../../src/store/job/receipts.ts'
import * as receipts from '../../src/store/job/receipts.ts'
import { openStore } from '../../src/store/pool.ts'
import { CODER } from '../../test/store/coder.ts'
import { openPlace } from '../place.ts'

const { values } = parseArgs({
  options: { jobs: { type: 'string', default: '3000' } },
})
const JOBS = Number(values.jobs)
const WARM = 200
const PER_WEEK = 20_000

function receiptOf(receiptId: string): NewReceipt {
  const now = Date.now()
  return {
    receiptId,
    entityId: null,
    clientId: 'c',
    iss: 'c',
    kind: 'token-create',
    jti: receiptId,
    requestDigest: randomBytes(32),
    digestVersion: 1,
    envelopeDigest: randomBytes(32),
    answers: randomBytes(32),
    replyTo: null,
    reference: null,
    status: 'SUCCEEDED',
    code: 200,
    outcome: 'CREATED',
    refusal: null,
    tokenId: randomUUID(),
    batchNo: null,
    chunk: null,
    counts: null,
    reasons: null,
    outcomes: null,
    failedRecords: 0,
    revision: 1,
    reversal: null,
    attempt: 1,
    acceptedAt: now,
    completedAt: now,
  }
}

/** The weeks that a store of that age has: of the outbox fewer are kept. Each past week gets some receipts. */
async function makeWeeks(client: pg.Client, weeks: number): Promise<void> {
  const { rows } = await client.query<{ name: string }>(
    `select relname as name from pg_inherits join pg_class on pg_class.oid = inhrelid
where inhparent in ('tokenmill.receipt'::regclass, 'tokenmill.outbox'::regclass)`,
  )
  for (const { name } of rows) await client.query(`drop table tokenmill.${name}`)
  const first = weeks === 1 ? 0 : -12
  for (let week = first; week < first + weeks; week += 1) {
    const monday = `date_trunc('week', current_date)::date + ${week * 7}`
    await client.query(`select tokenmill.make_week('receipt', ${monday})`)
    if (week >= -1) await client.query(`select tokenmill.make_week('outbox', ${monday})`)
    if (week > 0) continue
    await client.query(
      `insert into tokenmill.receipt (receipt_id, day, client_id, iss, kind, jti, request_digest, envelope_digest, status, code,
  revision, attempt, accepted_at, completed_at)
select gen_random_uuid(), ${monday}, 'c', 'c', 'token-create', n::text, '\\x00', '\\x00', 'SUCCEEDED', 200, 1, 1, now(), now()
from generate_series(1, $1::int) as n`,
      [PER_WEEK],
    )
  }
  const keyed = await client.query(`select to_regclass('tokenmill.receipt_key') as key`)
  if (keyed.rows[0]?.key)
    await client.query(
      `truncate tokenmill.receipt_key;
insert into tokenmill.receipt_key (receipt_id, day, revision) select receipt_id, day, revision from tokenmill.receipt`,
    )
  await client.query('vacuum analyze')
}

/** Processor time of a PostgreSQL process so far, in µs. */
async function processorTime(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8')
  const [user, system] = stat.slice(stat.lastIndexOf(')')).split(' ').slice(12, 14).map(Number)
  return ((user ?? 0) + (system ?? 0)) * 10_000
}

interface Timed {
  /** µs of PostgreSQL's processor for one. */
  processor: number
  /** µs that half of them took, for the caller. */
  p50: number
}

async function measure(url: string): Promise<Record<string, Timed>> {
  const store = openStore(url, { log: openLog('silent'), connectionsMax: 1 })
  // The way to the disk isn't measured: its time depends on what else the machine does.
  await store.query({ text: 'set synchronous_commit = off' })
  const { rows } = await store.query<{ pid: number }>({ text: 'select pg_backend_pid() as pid' })
  const pid = rows[0]?.pid ?? 0
  async function timed(work: (id: string) => Promise<unknown>): Promise<Timed> {
    for (const id of ids.slice(0, WARM)) await work(id)
    const took: number[] = []
    const before = await processorTime(pid)
    for (const id of ids.slice(WARM)) {
      const began = performance.now()
      await work(id)
      took.push(performance.now() - began)
    }
    const processor = Math.round(((await processorTime(pid)) - before) / JOBS)
    took.sort((a, b) => a - b)
    return { processor, p50: Math.round((took[JOBS >> 1] ?? 0) * 1000) }
  }
  const ids = Array.from({ length: WARM + JOBS }, () => randomUUID())
  const nothing = await timed(() => store.query({ name: 'nothing', text: 'select 1' }))
  const empty = await timed(id => store.transaction(async () => undefined, { lock: id }))
  const lookUp = await timed(id => receipts.find(store, id))
  const write = await timed(id => store.transaction(db => receipts.insertAll(db, CODER, [receiptOf(id)]), { lock: id }))
  const again = await timed(id => receipts.find(store, id))
  await store.close()
  const job = (unit: keyof Timed) => lookUp[unit] - nothing[unit] + write[unit] - empty[unit]
  return { nothing, empty, lookUp, write, again, job: { processor: job('processor'), p50: job('p50') } }
}

const place = await openPlace()
try {
  const installation = await place.open('postgres')
  const url = installation.env['DATABASE_URL'] ?? ''
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  const lines: Record<string, string | number>[] = []
  try {
    for (const weeks of [1, 21]) {
      await makeWeeks(client, weeks)
      for (const [name, { processor, p50 }] of Object.entries(await measure(url)))
        lines.push({ weeks, name, processor, p50 })
    }
  } finally {
    await client.end()
    await installation.close()
  }
  process.stdout.write('µs for each; job: look-up and write, without the way there and without an empty transaction\n')
  console.table(lines)
} finally {
  await place.close()
}
