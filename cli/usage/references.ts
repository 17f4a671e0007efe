// Defines the arguments and options of `tokenmill references export`. The code that runs it is loaded only when it is needed.
import { type Command, Option } from 'commander'
import { addCommand, readUuid } from '../command.ts'
import type { Terminal } from '../terminal.ts'

export function references(family: Command, terminal: Terminal): void {
  addCommand(family, 'export', 'writes whose cards a scope has, their tokens, and what must travel with them')
    .requiredOption('--scope <uuid>', 'the token scope', readUuid)
    .addOption(new Option('--format <name>', 'format of the output').choices(['csv', 'ndjson']).default('csv'))
    .option('--out <file>', 'write a file instead of standard output')
    .action(async options => (await import('../commands/references-export.ts')).run(terminal, options))
}
