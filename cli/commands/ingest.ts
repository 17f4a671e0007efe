// `tokenmill ingest`: reads files that hold no cards. Each kind of file is one command of the family.
import { ingestOrders } from '../../producers/ingest/orders.ts'
import { type IngestSummary, ingest } from '../../producers/ingest/run.ts'
import { systemClock } from '../../src/clock.ts'
import { OUTCOMES } from '../../src/job/outcome.ts'
import * as audits from '../../src/store/access/audits.ts'
import type { JsonOption } from '../command.ts'
import { EXIT, Stop } from '../exit.ts'
import { openCommandStore, openSession, withSession } from '../open/open.ts'
import { type GiveUpOption, openProducer, waitingOf } from '../process/producer.ts'
import { stopper } from '../process/stopper.ts'
import { actor, facts, print, type Terminal } from '../terminal.ts'
import { readMap, statusOf } from './migrate.ts'

interface Options extends JsonOption, GiveUpOption {
  client?: string
  format?: 'csv' | 'ndjson'
  map?: string
  ignoreUnknown?: boolean
  results?: string
  chunk: number
  inFlight: number
  batchId?: string
}

interface OrdersOptions extends JsonOption {
  results?: string
}

export function ingestOrderFile(terminal: Terminal, file: string, options: OrdersOptions): Promise<void> {
  return withSession(terminal, async session => {
    const { store } = await openCommandStore(session)
    const summary = await ingestOrders(file, options.results ?? `${file}.results.csv`, store)
    const { results, ...counts } = summary
    await audits.insert(store, { actor: actor(), action: 'orders.ingest', subject: 'orders', detail: { ...counts } })
    const shown = Object.entries(counts).map(([name, n]) => [name, String(n)] as const)
    print(terminal, options, summary, facts({ ...Object.fromEntries(shown), refused: results }))
    const { rejected, rows } = summary
    if (rejected > 0) throw new Stop(`${rejected} of ${rows} lines were refused; see ${results}`, EXIT.incomplete)
  })
}

export async function ingestTransactions(terminal: Terminal, file: string, options: Options): Promise<void> {
  const session = openSession(terminal)
  const stop = stopper(session)
  try {
    const map = options.map === undefined ? undefined : await readMap(options.map)
    const producing = await openProducer(session, options.client, ['bulk'])
    const summary = await ingest(
      { ...options, file, map },
      {
        ...producing,
        log: session.log,
        clock: systemClock,
        stream: terminal.stderr as NodeJS.WriteStream,
        stop: stop.signal,
        ...waitingOf(session, options),
      },
    )
    report(terminal, summary, options)
    const status = statusOf(summary)
    if (status !== EXIT.ok) process.exitCode = status
  } finally {
    stop.leave()
    await session.lifetime.close()
  }
}

function report(terminal: Terminal, summary: IngestSummary, options: JsonOption): void {
  const { batchId, rows, counts, results, complete, ms } = summary
  const outcomes = Object.fromEntries(OUTCOMES.map(outcome => [outcome.toLowerCase(), counts[outcome]]))
  const shown = Object.entries(outcomes).filter(([, n]) => n > 0)
  const text = facts({
    batch: batchId,
    rows: `${rows} in ${(ms / 1000).toFixed(1)} s`,
    ...Object.fromEntries(shown.map(([outcome, n]) => [outcome, String(n)])),
    'not in the ledger': complete ? results : undefined,
  })
  const value = { batch_id: batchId, complete, rows, ...outcomes, ms, results: complete ? results : undefined }
  print(terminal, options, value, text)
  if (!complete) throw new Stop('stopped before the end; run the same command again to continue')
}
