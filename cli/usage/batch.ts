// How `tokenmill batch` is typed. What it does is loaded when it is used.
import type { Command } from 'commander'
import { addCommand, readCount } from '../command.ts'
import type { Terminal } from '../terminal.ts'

export function batch(family: Command, terminal: Terminal): void {
  addCommand(family, 'list', 'lists batches, newest first')
    .option('--limit <n>', 'how many at most', readCount, 50)
    .action(async options => (await import('../commands/batch.ts')).list(terminal, options))
  addCommand(family, 'show <id>', 'shows one batch with its counts by outcome')
    .option('--client <id>', 'the client, if several have a batch with this id')
    .action(async (id, options) => (await import('../commands/batch.ts')).show(terminal, id, options))
  addCommand(family, 'cancel <id>', 'cancels the chunks of a batch that have not started')
    .option('--client <id>', 'the client, if several have a batch with this id')
    .action(async (id, options) => (await import('../commands/batch.ts')).cancel(terminal, id, options))
}
