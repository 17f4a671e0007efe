// How `tokenmill failed` is typed. What it does is loaded when it is used.
import type { Command } from 'commander'
import { addCommand } from '../command.ts'
import type { Terminal } from '../terminal.ts'

export function failed(family: Command, terminal: Terminal): void {
  addCommand(family, 'list', 'lists the failed set of every kind, oldest first').action(async options =>
    (await import('../commands/failed.ts')).list(terminal, options),
  )
  addCommand(family, 'retry [ids...]', 'sends failed jobs again; without ids all of them').action(
    async (ids, options) => (await import('../commands/failed.ts')).retry(terminal, ids, options),
  )
}
