// Defines the arguments and options of `tokenmill explain`. The code that runs it is loaded only when it is needed.
import type { Command } from 'commander'
import { jsonOption } from '../../command.ts'
import type { Terminal } from '../../terminal.ts'

const HELP = `
what: a token, receipt, jti or reference, an id of the failed set, or a batch
line: a line of the batch's file (of nested JSON: the row's place in the results), or the reference of a record`

export function explain(command: Command, terminal: Terminal): void {
  command
    .addOption(jsonOption())
    .option('--client <id>', 'only jobs of this client (id or name)')
    .addHelpText('after', HELP)
    .action(async (what, line, options) =>
      (await import('../../commands/operate/explain.ts')).explainTo(terminal, what, line, options),
    )
}
