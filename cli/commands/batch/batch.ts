// `tokenmill batch`: lists batches, shows how far one has come, and cancels one.
import { OUTCOMES } from '../../src/job/outcome.ts'
import * as audits from '../../src/store/access/audits.ts'
import * as batches from '../../src/store/batch/batches.ts'
import type { Db } from '../../src/store/pool.ts'
import type { JsonOption } from '../command.ts'
import { Stop } from '../exit.ts'
import { openCommandStore, withSession } from '../open/open.ts'
import { actor, facts, moment, print, say, type Terminal, table } from '../terminal.ts'

type Options = JsonOption & { client?: string }

export function list(terminal: Terminal, options: JsonOption & { limit: number }): Promise<void> {
  return withSession(terminal, async session => {
    const { store } = await openCommandStore(session)
    const found = await batches.list(store, options.limit)
    const rows = found.map(batch => [
      batch.batchId,
      batch.clientId,
      batch.recordKind,
      batch.state,
      moment(batch.createdAt),
    ])
    print(terminal, options, found.map(shownBatch), table(['BATCH', 'CLIENT', 'RECORDS', 'STATE', 'BEGUN'], rows))
  })
}

export function show(terminal: Terminal, id: string, options: Options): Promise<void> {
  return withSession(terminal, async session => {
    const { store } = await openCommandStore(session)
    const batch = await findOne(store, id, options.client)
    const { chunks, counts, lastAt } = await batches.progress(store, batch.batchNo)
    const records = OUTCOMES.reduce((sum, outcome) => sum + counts[outcome], 0)
    const shown = shownBatch(batch)
    const value = { ...shown, chunks_done: chunks, records_done: records, counts, last_at: lastAt && moment(lastAt) }
    const text = facts({
      batch: shown.batch_id,
      client: shown.client_id,
      records: shown.record_kind,
      token_scope: shown.token_scope ?? undefined,
      state: shown.state,
      begun: shown.created_at,
      'last chunk': moment(lastAt),
      'chunks done': `${chunks}`,
      'records done': `${records}`,
      ...Object.fromEntries(OUTCOMES.filter(name => counts[name] > 0).map(name => [`  ${name}`, `${counts[name]}`])),
    })
    print(terminal, options, value, text)
  })
}

export function cancel(terminal: Terminal, id: string, options: Options): Promise<void> {
  return withSession(terminal, async session => {
    const { store } = await openCommandStore(session)
    const batch = await findOne(store, id, options.client)
    const cancelled = await store.transaction(async db => {
      const done = await batches.cancel(db, batch.batchNo)
      const detail = { client_id: batch.clientId }
      if (done) await audits.insert(db, { actor: actor(), action: 'batch.cancel', subject: batch.batchId, detail })
      return done
    })
    if (!cancelled) say(terminal, 'This batch was cancelled before.')
    print(
      terminal,
      options,
      { ...shownBatch(batch), state: 'CANCELLED' },
      `${batch.batchId} is cancelled; records that were done before stay as they are.`,
    )
  })
}

async function findOne(db: Db, id: string, clientId: string | undefined): Promise<batches.Batch> {
  const found = (await batches.findById(db, id)).filter(batch => clientId === undefined || batch.clientId === clientId)
  const [batch, ...others] = found
  if (!batch) throw new Stop('There is no such batch; `tokenmill batch list` lists them.')
  if (others.length > 0) throw new Stop('Several clients have a batch with this id; choose one with --client.')
  return batch
}

function shownBatch(batch: batches.Batch) {
  return {
    batch_id: batch.batchId,
    client_id: batch.clientId,
    record_kind: batch.recordKind,
    token_scope: batch.tokenScope,
    chunk_records: batch.chunkRecords,
    // No message says how many chunks will follow: a batch is open until it is cancelled.
    state: batch.state === 'RUNNING' ? 'OPEN' : batch.state,
    accepted_at: moment(batch.acceptedAt),
    created_at: moment(batch.createdAt),
  }
}
