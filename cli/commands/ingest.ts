// `tokenmill ingest`: reads files that hold no cards. Each kind of file is one command of the family.
import { type Command, Option } from 'commander'
import { ingestOrders } from '../../producers/ingest/orders.ts'
import { type IngestSummary, ingest } from '../../producers/ingest/run.ts'
import { systemClock } from '../../src/clock.ts'
import { OUTCOMES } from '../../src/job/outcome.ts'
import { LEDGER_CHUNK } from '../../src/job/transaction-batch.ts'
import * as audits from '../../src/store/access/audits.ts'
import { addCommand, addFamily, type JsonOption } from '../command.ts'
import { EXIT, Stop } from '../exit.ts'
import { openCommandStore, openSession, withSession } from '../open/open.ts'
import { type GiveUpOption, giveUpOption, openProducer, waitingOf } from '../open/producer.ts'
import { stopper } from '../process/stopper.ts'
import { actor, facts, print, type Terminal } from '../terminal.ts'
import { readBetween, readMap, statusOf } from './migrate.ts'

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

export function registerIngest(program: Command, terminal: Terminal): void {
  const family = addFamily(program, 'ingest', 'reads files of transactions and orders into the store')
  addCommand(family, 'transactions <file>', 'adds every transaction of a file to the ledger (.csv, .ndjson; .gz)')
    .option('--client <file>', "the client's credentials (default: dev-client.json of the data directory)")
    .addOption(
      new Option('--format <name>', 'format of the file, if its name does not say it').choices(['csv', 'ndjson']),
    )
    .option('--map <file>', 'JSON that renames columns: {"column of the file": "tokenmill column" or null}')
    .option('--ignore-unknown', 'drop columns that are unknown and not mapped')
    .option('--results <file>', 'CSV of the refused lines (default: FILE.results.csv)')
    .option('--chunk <n>', 'transactions per job', readBetween(1, LEDGER_CHUNK.recordsMax), LEDGER_CHUNK.recordsDefault)
    .option('--in-flight <n>', 'number of chunks sent ahead of the first unanswered one', readBetween(1, 256), 16)
    .option('--batch-id <id>', 'id of the batch (default: from the file and the options that decide how it is read)')
    .addOption(giveUpOption())
    .action((file: string, options: Options) => ingestTransactions(terminal, file, options))
  addCommand(family, 'orders <file>', 'adds orders, or updates them to a later state (.ndjson; .gz)')
    .option('--results <file>', 'CSV of the refused lines (default: FILE.results.csv)')
    .action((file: string, options: OrdersOptions) => ingestOrderFile(terminal, file, options))
}

interface OrdersOptions extends JsonOption {
  results?: string
}

function ingestOrderFile(terminal: Terminal, file: string, options: OrdersOptions): Promise<void> {
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

async function ingestTransactions(terminal: Terminal, file: string, options: Options): Promise<void> {
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
