// Defines the arguments and options of `tokenmill failed`. The code that runs it is loaded only when it is needed.
import { type Command, Option } from 'commander'
import { FAULTS } from '../../../src/errors.ts'
import { addCommand, readMoment, withActor } from '../../command.ts'
import type { Terminal } from '../../terminal.ts'

export function failed(family: Command, terminal: Terminal): void {
  withFilters(addCommand(family, 'list', 'lists the failed set of every kind, oldest first')).action(async options =>
    (await import('../../commands/operate/failed.ts')).list(terminal, options),
  )
  addCommand(family, 'show <id>', 'says whose a failed job is, why it failed, and whether it can be retried').action(
    async (id, options) => (await import('../../commands/operate/failed.ts')).show(terminal, id, options),
  )
  withActor(
    withFilters(addCommand(family, 'retry [ids...]', 'sends failed jobs again; without ids and filters all of them')),
  )
    .option('--dry-run', 'only say how many of which kind would go')
    .action(async (ids, options) =>
      (await import('../../commands/operate/failed-acts.ts')).retry(terminal, ids, options),
    )
  withActor(withFilters(addCommand(family, 'discard [ids...]', 'removes failed jobs for good, by ids or by filters')), {
    needsReason: true,
  }).action(async (ids, options) =>
    (await import('../../commands/operate/failed-acts.ts')).discard(terminal, ids, options),
  )
}

function withFilters(command: Command): Command {
  return command
    .option('--kind <kind>', 'only jobs of this kind')
    .addOption(new Option('--fault <code>', 'only jobs that failed by this fault').choices(Object.keys(FAULTS)))
    .option('--client <client>', 'only jobs of this client (id or name)')
    .option('--since <time>', 'only jobs that failed at this time or later (RFC 3339, or a date)', readMoment)
    .option('--until <time>', 'only jobs that failed before this time', readMoment)
}
