// Defines the arguments and options of `tokenmill status` and `tokenmill doctor`. The code that runs them is loaded
// only when it is needed.
import type { Command } from 'commander'
import { jsonOption } from '../../command.ts'
import type { Terminal } from '../../terminal.ts'

export function status(command: Command, terminal: Terminal): void {
  command
    .addOption(jsonOption())
    .action(async options => (await import('../../commands/operate/status.ts')).showStatus(terminal, options))
}

export function doctor(command: Command, terminal: Terminal): void {
  command
    .option('--restore', 'the drill on a restored backup: says which keys open, and whether a sample of the cards does')
    .addOption(jsonOption())
    .action(async ({ restore, ...options }) =>
      restore
        ? (await import('../../commands/operate/restore-drill.ts')).showDrill(terminal, options)
        : (await import('../../commands/operate/doctor.ts')).showDoctor(terminal, options),
    )
}
