// Defines the arguments and options of `tokenmill scheme`. The code that runs it is loaded only when it is needed.
import type { Command } from 'commander'
import { addCommand, readCount } from '../command.ts'
import type { Terminal } from '../terminal.ts'

export function scheme(family: Command, terminal: Terminal): void {
  addCommand(family, 'list', 'lists scheme tokens, last changed first')
    .option('--open', 'only those with an outstanding call to a network, oldest first')
    .option('--limit <n>', 'how many at most', readCount, 200)
    .action(async options => (await import('../commands/scheme.ts')).list(terminal, options))
}
