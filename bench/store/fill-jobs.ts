// Fills a store with batches and receipts of 88 days, for benches of a store that is large already. SQL makes the rows, with the
// columns, indexes and partitions of those that workers write. The outcomes of a chunk are shorter than a worker's: of a full
// chunk they have some 50 kB, outside of the row.
import type { Client } from 'pg'
import { receiptId } from '../../src/job/envelope/ids.ts'
import { partitionStatements } from '../../src/store/schema.ts'

/** How many clients the batches and receipts are of, each for one entity. */
export const CLIENTS = 20
export const DAYS = 88
const DAY_MS = 86_400_000

const HEAD = `insert into tokenmill.receipt (receipt_id, day, client_id, iss, entity_id, kind, jti, request_digest, envelope_digest, reference,
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
const DIGEST = Buffer.alloc(32, 1)

/** Runs one statement, by the owner. */
export type Run = <R>(text: string, values?: unknown[]) => Promise<{ rows: R[] }>

export function runOn(client: Client): Run {
  return async <R>(text: string, values?: unknown[]) => ({ rows: (await client.query(text, values)).rows as R[] })
}

export interface FillOptions {
  batches: number
  /** One in five is a chunk's. */
  receipts: number
  /** So many jobs have the jti `asked-N` and the reference `asked for N`, from 0. */
  asked: number
  /** ms since the epoch. */
  now: number
}

interface Senders {
  clients: string[]
  entities: string[]
}

/** Fills; the installation has at least `CLIENTS` clients. */
export async function fillJobs(run: Run, { batches, receipts, asked, now }: FillOptions): Promise<void> {
  for (let week = 0; week <= DAYS + 7; week += 7)
    for (const text of partitionStatements(now - week * DAY_MS)) await run(text)
  const senders = await listSenders(run)
  const chunks = Math.max(1, Math.round(receipts / 5 / batches))
  await fillBatches(run, senders, { batches, chunks })
  // To build the indexes at the end takes less time than to extend them with each row.
  for (const { name } of INDEXES) await run(`drop index tokenmill.${name}`)
  await fillSingles(run, senders, Math.max(0, receipts - chunks * batches))
  await fillChunks(run, chunks)
  for (const { definition } of INDEXES) await run(definition)
  await fillAsked(run, senders, asked)
  await run(
    `insert into tokenmill.outbox (day, client_id, result_id, receipt_id, revision, state, created_at)
select at::date, ($1::text[])[1 + n % ${CLIENTS}], gen_random_uuid(), gen_random_uuid(), 1, 'SENT', at
from (select n, now() - random() * interval '6 days' as at from generate_series(1, $2::int) as n) as made`,
    [senders.clients, Math.round(receipts / 20)],
  )
  await run(
    'insert into tokenmill.receipt_key (receipt_id, day, revision) select receipt_id, day, revision from tokenmill.receipt',
  )
  for (const table of ['receipt_key', 'receipt', 'batch', 'outbox']) await run(`vacuum (analyze) tokenmill.${table}`)
}

async function listSenders(run: Run): Promise<Senders> {
  const { rows } = await run<{ client: string; entity: string }>(
    `select client_id as client, entities[1]::text as entity from tokenmill.client
where cardinality(entities) > 0 and not system order by client_id limit $1`,
    [CLIENTS],
  )
  return { clients: rows.map(({ client }) => client), entities: rows.map(({ entity }) => entity) }
}

const AGE = `now() - random() * interval '${DAYS} days'`

/** One batch in 199 is open: stalled, paused by its operator, at its sender's limit, of unknown length, or going on. */
async function fillBatches(
  run: Run,
  { clients, entities }: Senders,
  { batches, chunks }: { batches: number; chunks: number },
): Promise<void> {
  await run(
    `insert into tokenmill.batch (
  client_id,
  batch_id,
  entity_id,
  record_kind,
  chunk_records,
  layout,
  accepted_at,
  created_at,
  active_at,
  summed_at,
  extent_chunks,
  extent_rows,
  source_name,
  source_sha256,
  chunks_done,
  rows_done,
  counts,
  reasons,
  revision,
  cancelled_at,
  finished_at,
  paused_at,
  limit_chunks
)
select ($1::text[])[1 + n % $2::int], 'm-' || md5(n::text), ($3::uuid[])[1 + n % $2::int], 'token-create', 500, '{}', at, at,
  case when open and n % 398 = 0 then now() else at + interval '1 hour' end, at,
  case when n % 1592 = 0 then null else $4::int end, case when n % 1592 = 0 then null else $4::int * 500 end, 'cards-' || n || '.csv',
  md5(n::text) || md5((n + 1)::text), case when open then 1 else $4::int end, case when open then 500 else $4::int * 500 end,
  '{"CREATED":9990,"REJECTED":10}', '{"REJECTED":{"pan_luhn":8,"expiry_month":2}}', case when open or cancelled then 0 else 1 end,
  case when cancelled then at end,
  case when not open and not cancelled then at + interval '1 hour' end, case when open and n % 995 = 0 then at end,
  case when open and n % 1393 = 0 then 1 end
from (select n, n % 199 = 0 as open, n % 199 <> 0 and n % 20 = 7 as cancelled, ${AGE} as at from generate_series(1, $5::int) as n) as made`,
    [clients, CLIENTS, entities, chunks, batches],
  )
}

async function fillSingles(run: Run, { clients, entities }: Senders, singles: number): Promise<void> {
  for (let day = 0; day <= DAYS; day += 1) {
    const [from, to] = [day, day + 1].map(n => Math.round((singles / (DAYS + 1)) * n))
    await run(
      `${HEAD} select gen_random_uuid(), at::date, ($1::text[])[1 + n % ${CLIENTS}], 'gateway', ($5::uuid[])[1 + n % ${CLIENTS}], 'token-create',
  'put-' || gen_random_uuid(), $4::bytea, $4::bytea, 'order-' || n, 'SUCCEEDED', 200, 'CREATED', gen_random_uuid(), null, null, null, null, 1,
  1, at, at
from (select n, now() - (random() + ${day}) * interval '1 day' as at from generate_series($2::int + 1, $3::int) as n) as made`,
      [clients, from, to, DIGEST, entities],
    )
    process.stderr.write(`\r${to} single receipts`)
  }
}

async function fillChunks(run: Run, chunks: number): Promise<void> {
  for (let day = 0; day <= DAYS; day += 1) {
    await run(
      `${HEAD} select gen_random_uuid(), b.created_at::date, b.client_id, b.client_id, b.entity_id, 'token-batch', b.batch_id || '-' || c,
  $2::bytea, $2::bytea, null, 'SUCCEEDED', 200, null, null, b.batch_no, c, '{"CREATED":499,"REJECTED":1}',
  '[[' || c * 500 + 2 || ',4,"row-' || c || '",null,"pan_luhn"]]', 1, 1, b.created_at, b.created_at
from tokenmill.batch as b cross join generate_series(0, least(b.chunks_done, $1::int) - 1) as c
where b.created_at::date = current_date - $3::int`,
      [chunks, DIGEST, day],
    )
    process.stderr.write(`\rchunks of day ${day}            `)
  }
  process.stderr.write('\n')
}

/** Receipts that are looked up have ids computed from client and jti, and were published recently. */
async function fillAsked(run: Run, { clients, entities }: Senders, asked: number): Promise<void> {
  for (let n = 0; n < asked; n += 1) {
    const at = n % CLIENTS
    const clientId = clients[at] ?? ''
    await run(
      `${HEAD} select $1, at::date, $2, $2, $5::uuid, 'token-create', $3, '\\x00', '\\x00', $4, 'SUCCEEDED', 200, 'CREATED', gen_random_uuid(), null, null,
  null, null, 1, 1, at, at from (select ${AGE} as at) as made`,
      [receiptId(clientId, `asked-${n}`), clientId, `asked-${n}`, `asked for ${n}`, entities[at]],
    )
  }
}
