// Defines the arguments and options of `tokenmill results`. The code that runs it is loaded only when it is needed.
import type { Command } from 'commander'
import { addCommand, readMoment, withActor } from '../command.ts'
import type { Terminal } from '../terminal.ts'

export function results(family: Command, terminal: Terminal): void {
  addCommand(family, 'follow', 'prints results as NDJSON and acknowledges each when it is printed')
    .option('--client <file>', "the client's credentials (default: dev-client.json of the data directory)")
    .option('--reply-to <name>', 'a reply queue instead of the default queue')
    .action(async options => (await import('../commands/results.ts')).follow(terminal, options))
  addCommand(family, 'replay', 'publishes stored results of the last 7 days again')
    .requiredOption('--since <time>', 'an RFC 3339 time, or a date', readMoment)
    .option('--client <file>', "the client's credentials (default: dev-client.json of the data directory)")
    .option('--reply-to <name>', 'results of this reply queue instead of the default queue')
    .action(async options => (await import('../commands/results.ts')).replay(terminal, options))
  withActor(
    addCommand(
      family,
      'confirm <receipt>',
      'says that a receipt stands as it is, though tokenmill did not write it so',
    ),
    { needsReason: true },
  ).action(async (receipt, options) =>
    (await import('../commands/confirm-receipt.ts')).confirm(terminal, receipt, options),
  )
}
