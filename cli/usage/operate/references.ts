// Defines the arguments and options of `tokenmill references missing`. The code that runs it is loaded only when it is
// needed.
import { type Command, InvalidArgumentError } from 'commander'
import { addCommand, collect, readUuid } from '../../command.ts'
import type { Terminal } from '../../terminal.ts'

function readProvider(text: string): string {
  if (!/^[A-Za-z0-9._-]{1,64}$/.test(text))
    throw new InvalidArgumentError('It has 1 to 64 letters, digits, dots, dashes and underscores.')
  return text
}

export function missingReferences(family: Command, terminal: Terminal): void {
  addCommand(family, 'missing <expected>', 'lists the cards of a file, one id a line, that have no token, and says why')
    .requiredOption('--scope <uuid>', 'the token scope', readUuid)
    .requiredOption('--provider <name>', 'the provider whose ids they are', readProvider)
    .option('--provider-account <id>', 'the account at the provider')
    .option(
      '--results <file>',
      'results of migrate, which know the rows that were skipped; may be repeated',
      collect(String),
    )
    .action(async (file, options) =>
      (await import('../../commands/operate/missing-references.ts')).run(terminal, file, options),
    )
}
