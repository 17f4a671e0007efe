// `tokenmill batch`: lists batches, and shows their progress and why a batch is stalled. acts.ts has the commands that
// change batches.
import { explainStalls } from '../../../producers/operate/stalled-batches.ts'
import { wholeStallReader } from '../../../producers/operate/whole-reader.ts'
import { systemClock } from '../../../src/clock.ts'
import type { BatchState } from '../../../src/job/choices.ts'
import { OUTCOMES } from '../../../src/job/outcome.ts'
import * as clients from '../../../src/store/access/clients.ts'
import * as batchList from '../../../src/store/batch/batch-list.ts'
import { type Batch, WHOLE_BATCH } from '../../../src/store/batch/batch-row.ts'
import { stateOf } from '../../../src/store/batch/batch-state.ts'
import { batchSpeed } from '../../../src/store/batch/batch-sums.ts'
import { ALL } from '../../../src/store/sight.ts'
import type { JsonOption } from '../../command.ts'
import { openCommandStore, openQueues, type Session, withSession } from '../../open/open.ts'
import { facts, moment, print, type Terminal, table } from '../../terminal.ts'
import { type ClientOption, findOne, shownBatch } from './view.ts'

interface ListOptions extends JsonOption {
  limit: number
  state?: BatchState
  client?: string
  since?: number
}

export function list(terminal: Terminal, { limit, state, client, since, ...options }: ListOptions): Promise<void> {
  return withSession(terminal, async session => {
    const { store } = await openCommandStore(session)
    const named = client === undefined ? undefined : await clients.findByIdOrName(store, client)
    const clientId = client === undefined ? undefined : (named?.[0]?.clientId ?? client)
    const now = systemClock()
    const found = await batchList.list(ALL, store, { order: 'newest', limit, state, clientId, since, now }, WHOLE_BATCH)
    const rows = found.map(batch => [
      batch.batchId,
      batch.clientId,
      batch.recordKind,
      stateOf(batch, now),
      `${batch.rowsDone}${batch.extent?.rows == null ? '' : ` of ${batch.extent.rows}`}`,
      moment(batch.createdAt),
    ])
    const headings = ['BATCH', 'CLIENT', 'RECORDS', 'STATE', 'ROWS', 'BEGUN']
    print(
      terminal,
      options,
      found.map(batch => shownBatch(batch, now)),
      table(headings, rows),
    )
  })
}

export function show(terminal: Terminal, id: string, options: ClientOption): Promise<void> {
  return withSession(terminal, async session => {
    const { store } = await openCommandStore(session)
    const batch = await findOne(store, id, options.client)
    const value = await describeBatch(batch, session, systemClock())
    print(terminal, options, value, textOf(value))
  })
}

/** The facts about a batch that a person wants to know. */
export async function describeBatch(batch: Batch, session: Session, now: number) {
  const { store, database } = await openCommandStore(session)
  const shown = shownBatch(batch, now)
  const client = await clients.find(store, batch.clientId)
  const isGoing = shown.state === 'RUNNING' || shown.state === 'OPEN'
  const rate = isGoing ? await batchSpeed(store, batch, now) : 0
  const left = batch.extent?.rows == null ? undefined : Math.max(0, batch.extent.rows - batch.rowsDone)
  const queues = () => openQueues(session, database)
  const [stall] =
    shown.state === 'STALLED' ? await explainStalls([batch], { reader: wholeStallReader(store), queues, now }) : []
  return {
    ...shown,
    client_name: client?.name ?? null,
    rows_left: left ?? null,
    rows_per_second: isGoing ? Math.round(rate) : null,
    eta_seconds: isGoing && left !== undefined && rate > 0 ? Math.ceil(left / rate) : null,
    why: stall?.why ?? WHY[shown.state] ?? null,
  }
}

const WHY: Partial<Record<BatchState, string>> = {
  OPEN: 'no chunk has said how many there will be',
  ABANDONED: 'no chunk came for 8 days; one that still comes is worked',
}

function textOf(shown: Awaited<ReturnType<typeof describeBatch>>): string[] {
  const { counts, reasons, eta_seconds: eta } = shown
  const of = (done: number, all: number | null) => (all === null ? `${done}` : `${done} of ${all}`)
  return facts({
    batch: shown.batch_id,
    client: shown.client_name === null ? shown.client_id : `${shown.client_id} (${shown.client_name})`,
    records: shown.record_kind,
    token_scope: shown.token_scope ?? undefined,
    source: shown.source_name ?? undefined,
    'source digest': shown.source_sha256 ?? undefined,
    state: shown.why === null ? shown.state : `${shown.state}: ${shown.why}`,
    begun: shown.created_at,
    'last activity': shown.active_at,
    paused: shown.paused_at ?? undefined,
    cancelled: shown.cancelled_at ?? undefined,
    finished: shown.finished_at === null ? undefined : `${shown.finished_at} (revision ${shown.revision})`,
    chunks: of(shown.chunks_done, shown.chunks),
    rows: of(shown.records_done, shown.records),
    rate: shown.rows_per_second === null ? undefined : `${shown.rows_per_second} rows/s`,
    ETA: eta === null ? undefined : `${eta} s`,
    ...Object.fromEntries(
      OUTCOMES.filter(name => counts[name] > 0).flatMap(name => [
        [`  ${name}`, `${counts[name]}`],
        ...Object.entries(reasons[name] ?? {})
          .sort(([, a], [, b]) => b - a)
          .map(([reason, n]) => [`    ${name.toLowerCase()}, ${reason}`, `${n}`]),
      ]),
    ),
  })
}
