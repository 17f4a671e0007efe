// Defines the arguments and options of `tokenmill system`. The code that runs it is loaded only when it is needed.
import { Argument, type Command } from 'commander'
import { SYSTEM_CLIENTS } from '../../src/job/system-clients.ts'
import { addCommand, withActor } from '../command.ts'
import type { Terminal } from '../terminal.ts'

export function system(family: Command, terminal: Terminal): void {
  withActor(addCommand(family, 'rotate', "replaces the key by which tokenmill's own processes of a role sign"))
    .addArgument(new Argument('<role>', 'whose key is replaced').choices(SYSTEM_CLIENTS))
    .option('--stolen', 'end the former key at once: what it signed and no worker has taken is dropped')
    .option('--yes', 'do not ask')
    .action(async (role, options) => (await import('../commands/system.ts')).rotate(terminal, role, options))
  addCommand(family, 'reversals', 'lists reversals that a stolen key signed after the theft, newest first').action(
    async options => (await import('../commands/withheld-reversals.ts')).list(terminal, options),
  )
  withActor(addCommand(family, 'confirm <envelope>', 'does such a reversal all the same'), {
    needsReason: true,
  }).action(async (envelope, options) =>
    (await import('../commands/withheld-reversals.ts')).confirm(terminal, envelope, options),
  )
}
