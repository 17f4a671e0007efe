// How `tokenmill bin-table` is typed. What it does is loaded when it is used.
import type { Command } from 'commander'
import { BIN_COLUMNS } from '../../src/token/bin.ts'
import { addCommand } from '../command.ts'
import type { Terminal } from '../terminal.ts'

export function binTable(family: Command, terminal: Terminal): void {
  addCommand(family, 'import <file>', `adds and updates ranges from a CSV (columns: ${BIN_COLUMNS.join(', ')})`).action(
    async (file, options) => (await import('../commands/bin-table.ts')).importFile(terminal, file, options),
  )
}
