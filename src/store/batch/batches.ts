// Batches: what the first chunk said that all later ones must say too. Counts are never kept here (one hot row a
// batch would serialise its chunks): they are summed from the chunks' receipts.
import type { RecordKind } from '../../job/catalogue.ts'
import { type Counts, noCounts, OUTCOMES } from '../../job/outcome.ts'
import type { Db } from '../pool.ts'

export interface Batch {
  batchNo: number
  clientId: string
  batchId: string
  /** Of a `token-batch`, or what a `transaction-batch` holds. */
  recordKind: RecordKind | 'transaction'
  tokenScope: string | null
  chunkRecords: number
  layout: Record<string, unknown>
  acceptedAt: number
  state: 'RUNNING' | 'CANCELLED'
  createdAt: number
}

interface Row {
  batch_no: number
  client_id: string
  batch_id: string
  record_kind: Batch['recordKind']
  token_scope: string | null
  chunk_records: number
  layout: Record<string, unknown>
  accepted_at: number
  state: Batch['state']
  created_at: number
}

const COLUMNS =
  'batch_no, client_id, batch_id, record_kind, token_scope, chunk_records, layout, accepted_at, state, created_at'

function batchOf(row: Row): Batch {
  return {
    batchNo: row.batch_no,
    clientId: row.client_id,
    batchId: row.batch_id,
    recordKind: row.record_kind,
    tokenScope: row.token_scope,
    chunkRecords: row.chunk_records,
    layout: row.layout,
    acceptedAt: row.accepted_at,
    state: row.state,
    createdAt: row.created_at,
  }
}

export async function find(db: Db, clientId: string, batchId: string): Promise<Batch | undefined> {
  const { rows } = await db.query<Row>({
    name: 'batch-find',
    text: `select ${COLUMNS} from tokenmill.batch where client_id = $1 and batch_id = $2`,
    values: [clientId, batchId],
  })
  const row = rows[0]
  return row && batchOf(row)
}

/** The batch, made now if this is its first chunk. */
export async function open(db: Db, batch: Omit<Batch, 'batchNo' | 'state' | 'createdAt'>): Promise<Batch> {
  const known = await find(db, batch.clientId, batch.batchId)
  if (known) return known
  await db.query({
    text: `insert into tokenmill.batch (client_id, batch_id, record_kind, token_scope, chunk_records, layout, accepted_at)
values ($1, $2, $3, $4, $5, $6::jsonb, $7) on conflict on constraint batch_id_stands_once_per_client do nothing`,
    values: [
      batch.clientId,
      batch.batchId,
      batch.recordKind,
      batch.tokenScope,
      batch.chunkRecords,
      JSON.stringify(batch.layout),
      new Date(batch.acceptedAt),
    ],
  })
  const made = await find(db, batch.clientId, batch.batchId)
  if (!made) throw new Error('broken law: a batch that was opened is found')
  return made
}

export async function list(db: Db, limit: number): Promise<Batch[]> {
  const { rows } = await db.query<Row>({
    text: `select ${COLUMNS} from tokenmill.batch order by batch_no desc limit $1`,
    values: [limit],
  })
  return rows.map(batchOf)
}

/** Batches begun since `since` (ms), newest first. */
export async function listSince(db: Db, since: number, limit: number): Promise<Batch[]> {
  const { rows } = await db.query<Row>({
    text: `select ${COLUMNS} from tokenmill.batch where created_at >= $1 order by batch_no desc limit $2`,
    values: [new Date(since), limit],
  })
  return rows.map(batchOf)
}

export async function findById(db: Db, batchId: string): Promise<Batch[]> {
  const { rows } = await db.query<Row>({
    text: `select ${COLUMNS} from tokenmill.batch where batch_id = $1`,
    values: [batchId],
  })
  return rows.map(batchOf)
}

/** Chunks that were not yet started will be answered as cancelled. Returns whether there was one to cancel. */
export async function cancel(db: Db, batchNo: number): Promise<boolean> {
  const { count } = await db.query({
    text: `update tokenmill.batch set state = 'CANCELLED', cancelled_at = now() where batch_no = $1 and state = 'RUNNING'`,
    values: [batchNo],
  })
  return count === 1
}

/** Chunks done and records by outcome. */
export async function progress(
  db: Db,
  batchNo: number,
): Promise<{ chunks: number; counts: Counts; lastAt: number | null }> {
  const sums = OUTCOMES.map(outcome => `coalesce(sum((counts->>'${outcome}')::int), 0) as "${outcome}"`).join(', ')
  const { rows } = await db.query<Record<string, number>>({
    text: `select count(*) as chunks, max(completed_at) as last_at, ${sums} from tokenmill.receipt where batch_no = $1`,
    values: [batchNo],
  })
  const counts = noCounts()
  for (const outcome of OUTCOMES) counts[outcome] = Number(rows[0]?.[outcome] ?? 0)
  return { chunks: Number(rows[0]?.['chunks'] ?? 0), counts, lastAt: rows[0]?.['last_at'] ?? null }
}
