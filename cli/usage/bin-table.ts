// Defines the arguments and options of `tokenmill bin-table`. The code that runs it is loaded only when it is needed.
import type { Command } from 'commander'
import { BIN_COLUMNS } from '../../src/token/bin.ts'
import { addCommand } from '../command.ts'
import type { Terminal } from '../terminal.ts'

export function binTable(family: Command, terminal: Terminal): void {
  addCommand(family, 'import <file>', `adds and updates ranges from a CSV (columns: ${BIN_COLUMNS.join(', ')})`).action(
    async (file, options) => (await import('../commands/bin-table.ts')).importFile(terminal, file, options),
  )
}
