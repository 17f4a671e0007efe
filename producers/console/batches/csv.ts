// The list of batches, and the refused rows of one, as CSV. The columns are named as in `batch list --json`.
import { meaningOf } from '../../../src/errors.ts'
import { OUTCOMES } from '../../../src/job/outcome.ts'
import * as batchList from '../../../src/store/batch/batch-list.ts'
import { stateOf } from '../../../src/store/batch/batch-state.ts'
import { SEEN_BATCH, type SeenBatch } from '../../../src/store/console/batches.ts'
import type { Db } from '../../../src/store/pool.ts'
import { type Sight, sightOf } from '../../../src/store/sight.ts'
import type { ConsoleApp } from '../app.ts'
import { sendCsv } from '../csv.ts'
import type { ConsoleDeps } from '../deps.ts'
import { sessionOf } from '../server/guard.ts'
import { missingPage, sendPage } from '../server/page.ts'
import { batchOf } from './facts.ts'
import { filterOf, readAsked } from './filters.ts'
import { FIRST, lookForRefused, type RowPlace } from './refused.ts'

/** A statement gives no more refused rows of a chunk than this. */
const REFUSED_PAGE = 1_000
const LOOK_MS = 500

type Cells = readonly (string | number | null)[]

const BATCH_HEAD = [
  ...['batch_id', 'client_id', 'client_name', 'record_kind', 'token_scope', 'state', 'created_at', 'active_at'],
  ...['paused_at', 'cancelled_at', 'finished_at', 'revision', 'source_name', 'source_sha256', 'chunks', 'chunks_done'],
  ...['records', 'records_done', ...OUTCOMES.map(outcome => outcome.toLowerCase())],
]
const REFUSED_HEAD = ['line', 'outcome', 'reason', 'meaning']

export function csvRoutes(app: ConsoleApp, deps: ConsoleDeps): void {
  const { store, clock } = deps

  app.post('/batches/csv', async (request, reply) => {
    const session = sessionOf(request)
    const asked = readAsked(request.body)
    const { state, clientId, since, until } = asked
    const given = Object.entries({ state, client_id: clientId, since, until }).filter(
      ([, value]) => value !== undefined,
    )
    return sendCsv(deps, session, reply, {
      name: 'batches',
      subject: 'batches',
      parameters: { list: 'batches', ...Object.fromEntries(given) },
      head: BATCH_HEAD,
      // Newest first, whatever the page shows: this order stays while the file is sent.
      pages: () => batchPages(sightOf(session.entities), store, { ...filterOf(asked), now: clock() }),
    })
  })

  app.post<{ Params: { no: string } }>('/batches/:no/refused/csv', async (request, reply) => {
    const session = sessionOf(request)
    const batch = await batchOf(deps, session, request.params.no)
    if (!batch) return sendPage(reply, 404, missingPage(deps, session))
    const { batchNo, batchId, clientId } = batch
    return sendCsv(deps, session, reply, {
      name: `batch-${batchNo}-refused`,
      subject: batchId,
      parameters: { list: 'refused', client_id: clientId },
      head: REFUSED_HEAD,
      pages: () => refusedPages(sightOf(session.entities), store, batchNo),
    })
  })
}

async function* batchPages(
  sight: Sight,
  db: Db,
  asked: batchList.ListFilter & { now: number },
): AsyncGenerator<readonly Cells[]> {
  for await (const page of batchList.listPages(sight, db, asked, SEEN_BATCH))
    yield page.map(batch => batchCells(batch, asked.now))
}

function batchCells(batch: SeenBatch, now: number): Cells {
  const at = (ms: number | null) => (ms === null ? null : new Date(ms).toISOString())
  return [
    ...[batch.batchId, batch.clientId, batch.clientName, batch.recordKind, batch.tokenScope, stateOf(batch, now)],
    ...[batch.createdAt, batch.activeAt, batch.pausedAt, batch.cancelledAt, batch.finishedAt].map(at),
    ...[batch.revision, batch.sourceName, batch.sourceSha256, batch.extentChunks, batch.chunksDone],
    ...[batch.extentRows, batch.rowsDone, ...OUTCOMES.map(outcome => batch.counts[outcome])],
  ]
}

async function* refusedPages(sight: Sight, db: Db, batchNo: number): AsyncGenerator<readonly Cells[]> {
  for (let after: RowPlace | undefined = FIRST; after; ) {
    const look = await lookForRefused(sight, db, { batchNo, after, limit: REFUSED_PAGE, ms: LOOK_MS })
    yield look.found.map(({ line, outcome, reason }) => [
      ...[line, outcome, reason],
      reason === null ? null : meaningOf(reason).text,
    ])
    after = look.next
  }
}
