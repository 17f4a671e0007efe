// Defines the arguments and options of `tokenmill ingest`. The code that runs it is loaded only when it is needed.
import { type Command, Option } from 'commander'
import { LEDGER_CHUNK } from '../../src/job/choices.ts'
import { addCommand, giveUpOption, readBetween } from '../command.ts'
import type { Terminal } from '../terminal.ts'

export function ingest(family: Command, terminal: Terminal): void {
  addCommand(family, 'transactions <file>', 'adds every transaction of a file to the ledger (.csv, .ndjson; .gz)')
    .option('--client <file>', "the client's credentials (default: dev-client.json of the data directory)")
    .addOption(
      new Option('--format <name>', 'format of the file, if its name does not say it').choices(['csv', 'ndjson']),
    )
    .option('--map <file>', 'JSON that renames columns: {"column of the file": "tokenmill column" or null}')
    .option('--ignore-unknown', 'drop columns that are unknown and not mapped')
    .option('--results <file>', 'CSV of the refused lines (default: FILE.results.csv)')
    .option('--chunk <n>', 'transactions per job', readBetween(1, LEDGER_CHUNK.recordsMax), LEDGER_CHUNK.recordsDefault)
    .option('--in-flight <n>', 'number of chunks that may be unanswered at once', readBetween(1, 256), 16)
    .option('--batch-id <id>', 'id of the batch (default: from the file and the options that decide how it is read)')
    .addOption(giveUpOption())
    .action(async (file, options) =>
      (await import('../commands/ingest.ts')).ingestTransactions(terminal, file, options),
    )
  addCommand(family, 'orders <file>', 'adds orders, or updates them to a later state (.ndjson; .gz)')
    .option('--results <file>', 'CSV of the refused lines (default: FILE.results.csv)')
    .action(async (file, options) => (await import('../commands/ingest.ts')).ingestOrderFile(terminal, file, options))
}
