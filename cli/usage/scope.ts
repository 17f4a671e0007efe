// Defines the arguments and options of `tokenmill scope`. The code that runs it is loaded only when it is needed.
import { type Command, Option } from 'commander'
import { REQUESTORS } from '../../src/store/access/scopes.ts'
import { addCommand, readUuid } from '../command.ts'
import type { Terminal } from '../terminal.ts'

export function scope(family: Command, terminal: Terminal): void {
  addCommand(family, 'add', 'makes a token scope and prints its id')
    .requiredOption('--entity <uuid>', 'the merchant entity that owns it', readUuid)
    .option('--par', 'support payment account references')
    .option('--network-tokens', 'support scheme (network) tokens')
    .option('--auto', 'request a scheme token for each new token; with --network-tokens or --par')
    .addOption(
      new Option('--requestor <who>', 'the token requestor of scheme tokens').choices(REQUESTORS).default('MERCHANT'),
    )
    .addOption(
      new Option('--bin-digits <n>', 'number of BIN digits that are stored and shown').choices(['6', '8']).default('8'),
    )
    .option('--keep-billing', 'keep the billing addresses of cards on file')
    .action(async options => (await import('../commands/scope.ts')).add(terminal, options))
  addCommand(family, 'list', 'lists token scopes')
    .option('--entity <uuid>', 'list only those of this entity', readUuid)
    .action(async options => (await import('../commands/scope.ts')).list(terminal, options))
}
