// Defines the arguments and options of `tokenmill batch`. The code that runs it is loaded only when it is needed.
import { type Command, Option } from 'commander'
import { BATCH_STATES } from '../../src/job/choices.ts'
import { addCommand, readCount, readMoment, withActor } from '../command.ts'
import type { Terminal } from '../terminal.ts'

const load = () => import('../commands/batch/batch.ts')
const loadActs = () => import('../commands/batch/acts.ts')

export function batch(family: Command, terminal: Terminal): void {
  addCommand(family, 'list', 'lists batches, newest first')
    .option('--limit <n>', 'how many at most', readCount, 50)
    .addOption(new Option('--state <state>', 'only those in this state').choices(BATCH_STATES))
    .option('--client <id>', 'only those of this client, by id or name')
    .option('--since <time>', 'only those that began then or later', readMoment)
    .action(async options => (await load()).list(terminal, options))
  addCommand(family, 'show <id>', 'shows one batch: its state and why, counts by outcome and reason, rate and rest')
    .option('--client <id>', 'the client, if several have a batch with this id')
    .action(async (id, options) => (await load()).show(terminal, id, options))
  act(family, 'pause [id]', 'puts the chunks of a batch back until it is resumed')
    .option('--all', 'every batch that is under way')
    .action(async (id, options) => (await loadActs()).pause(terminal, id, options))
  act(family, 'resume [id]', 'lets a paused batch go on')
    .option('--all', 'every batch that an operator paused')
    .action(async (id, options) => (await loadActs()).resume(terminal, id, options))
  act(family, 'cancel <id>', 'cancels the chunks of a batch that have not started')
    .option('--yes', 'do not ask')
    .action(async (id, options) => (await loadActs()).cancel(terminal, id, options))
  act(family, 'note <id>', 'writes a note on a batch, for everybody who sees it; --reason is the note', {
    needsReason: true,
  }).action(async (id, options) => (await loadActs()).note(terminal, id, options))
}

function act(family: Command, name: string, description: string, actor?: { needsReason: boolean }): Command {
  const command = addCommand(family, name, description)
  return withActor(command.option('--client <id>', 'the client, if several have a batch with this id'), actor)
}
