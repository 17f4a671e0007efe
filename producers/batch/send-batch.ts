// Sends a list as a batch over the queues: cuts it into chunks, keeps a number of them in flight, and yields the result of each
// record in the order of the list. It never holds more of the list than the chunks in flight.
import type { Clock } from '../../src/clock.ts'
import { ConfigError } from '../../src/config.ts'
import { recordsOf } from '../../src/job/answer/created-columns.ts'
import type { Result } from '../../src/job/answer/result.ts'
import { CHUNK, type RecordKind } from '../../src/job/choices.ts'
import type { RecordResult } from '../../src/job/outcome.ts'
import type { PublicCaptureKey } from '../../src/vault/capture/encrypt.ts'
import { type RecordForm, sendInForm } from '../client/in-form.ts'
import type { Client } from '../client/interface.ts'
import { chunkIn, cutRows, type RowChunk } from '../rows/chunks.ts'
import type { Row } from '../rows/record.ts'
import type { BatchPlan } from '../token-batch.ts'
import { BatchError, refusedChunk } from './batch-error.ts'
import { type Piece, sendInOrder } from './in-order.ts'
import type { BatchOptions, BatchRecord, Ended } from './interface.ts'
import { rowOf } from './records.ts'
import { sendChunk } from './send-chunk.ts'

export interface BatchDeps {
  client: Pick<Client, 'clientId' | 'call'>
  /** The scope of the client's file. */
  tokenScope: string | undefined
  captureKey(): PublicCaptureKey | undefined
  clock: Clock
}

const IN_FLIGHT = 8
const ANSWER_MS = 600_000
/** How many records are read off the list before they are cut. */
const READ = 500

/** A chunk of the list. */
type ListChunk<Record> = RowChunk & Piece<Record>

export async function* sendBatch<Kind extends RecordKind>(
  options: BatchOptions<Kind>,
  records: AsyncIterable<BatchRecord<Kind>> | Iterable<BatchRecord<Kind>>,
  deps: BatchDeps,
): AsyncGenerator<Ended<BatchRecord<Kind>>, void, void> {
  const { kind, checkpoint, dryRun = false, timeoutMs = ANSWER_MS, inFlight = IN_FLIGHT } = options
  const plan = planOf(options, deps)
  const form: RecordForm =
    kind === 'token-create' ? { now: checkpoint?.form ?? 'columns' } : { now: 'rows', isFixed: true }
  const stop = new AbortController()
  try {
    yield* sendInOrder<BatchRecord<Kind>, ListChunk<BatchRecord<Kind>>, Result>(
      chunksOf<Kind>(kind, records),
      options,
      {
        inFlight,
        requestsOf: ({ records }) => records,
        send: chunk =>
          sendInForm(form, now => {
            const number = chunk.position
            const sent = { ...chunkIn(now, chunk), number, isLast: chunk.isLast && !dryRun }
            return sendChunk(deps.client, plan, sent, { timeoutMs, resultColumns: true, stop: stop.signal })
          }),
        endedOf,
        acceptedAt: plan.acceptedAt,
        form: () => form.now,
      },
    )
  } finally {
    stop.abort()
  }
}

function planOf({ kind, batchId, scope, policy, dryRun, checkpoint }: BatchOptions, deps: BatchDeps): BatchPlan {
  const captureKey = deps.captureKey()
  if (!captureKey) throw new ConfigError('batch: the client’s file names no JWE capture key; ask the operator for one')
  const tokenScope = kind === 'token-create' ? (scope ?? deps.tokenScope) : undefined
  return {
    batchId,
    recordKind: kind,
    tokenScope,
    acceptedAt: checkpoint?.acceptedAt ?? Math.floor(deps.clock() / 1_000),
    policy,
    dryRun,
    captureKey,
  }
}

/** The list in chunks: the same list always gives the same ones. */
async function* chunksOf<Kind extends RecordKind>(
  kind: Kind,
  list: AsyncIterable<BatchRecord<Kind>> | Iterable<BatchRecord<Kind>>,
): AsyncGenerator<ListChunk<BatchRecord<Kind>>, void, void> {
  const read: BatchRecord<Kind>[] = []
  let before = 0
  async function* parts(): AsyncGenerator<Row[], void, void> {
    let part: Row[] = []
    let line = 0
    for await (const record of list) {
      read.push(record)
      part.push(rowOf(++line, kind, record))
      if (part.length < READ) continue
      yield part
      part = []
    }
    if (part.length > 0) yield part
  }
  for await (const chunk of cutRows(parts(), CHUNK.recordsDefault)) {
    const records = read.splice(0, chunk.rows.length)
    yield { ...chunk, before, records }
    before += records.length
  }
}

/** The results of a chunk, each with its record. Throws for a chunk that was refused as a whole. */
function endedOf<Record>({ position, rows, records }: ListChunk<Record>, result: Result): Ended<Record>[] {
  const results = recordsOf(result) ?? failedAll(position, rows, result)
  if (results.length !== rows.length)
    throw new Error(`broken law: chunk ${position} has ${rows.length} records and ${results.length} outcomes`)
  return rows.map(({ reference }, index) => {
    const { reference: _, ...told } = results[index] as RecordResult
    const named = told.reason === 'reference_pan' ? undefined : reference
    return {
      record: records[index] as Record,
      result: { ...told, ...(named !== undefined && { reference: named }) },
    }
  })
}

function failedAll(position: number, rows: readonly Row[], result: Result): RecordResult[] {
  if (result.code !== 500) throw refusedChunk(position, result)
  if (result.revision === 0)
    throw new BatchError(
      `chunk ${position} was done before, and its failed records could not be worked again: go on from the last checkpoint later`,
    )
  return rows.map(({ line }) => ({ line, outcome: 'FAILED', code: 500, reason: 'internal' }))
}
