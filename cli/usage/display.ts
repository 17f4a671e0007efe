// Defines the arguments and options of `tokenmill display`. The code that runs it is loaded only when it is needed.
import { type Command, InvalidArgumentError } from 'commander'
import { isPrintable } from '../../src/job/envelope/text.ts'
import { holdsPossiblePan } from '../../src/token/possible-pan.ts'
import { addCommand, collect, readUuid, withActor } from '../command.ts'
import type { Terminal } from '../terminal.ts'

const NAME_LENGTH_MAX = 64

const load = () => import('../commands/person/display.ts')

export function display(family: Command, terminal: Terminal): void {
  const add = addCommand(family, 'add', 'prints a link, once, that shows figures of the page Now until it is revoked')
    .argument('<name>', 'where the screen is, such as “room 2”; the display does not show it', readName)
    .option(
      '--entity <uuid>',
      'an entity about whose batches it tells; may be repeated (default: the whole installation)',
      collect(readUuid),
    )
  withActor(add).action(async (name, options) => (await load()).add(terminal, name, options))
  addCommand(family, 'list', 'lists wall displays').action(async options => (await load()).list(terminal, options))
  withActor(
    addCommand(family, 'revoke <display>', 'revokes a wall display, by name or id; it shows nothing more'),
  ).action(async (word, options) => (await load()).revoke(terminal, word, options))
}

function readName(text: string): string {
  const name = text.trim()
  if (name.length === 0 || name.length > NAME_LENGTH_MAX || !isPrintable(name) || holdsPossiblePan(name))
    throw new InvalidArgumentError(`A name is 1 to ${NAME_LENGTH_MAX} printable characters, and no long number.`)
  return name
}
