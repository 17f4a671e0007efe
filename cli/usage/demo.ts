// Defines `tokenmill demo`. The code that runs it is loaded only when it is needed.
import type { Command } from 'commander'
import type { Terminal } from '../terminal.ts'

export function demo(command: Command, terminal: Terminal, script: string): void {
  command.action(async () => (await import('../commands/demo/demo.ts')).demo(terminal, script))
}
