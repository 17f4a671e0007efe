// Defines the arguments and options of `tokenmill threeds-contract`. The code that runs it is loaded only when it is
// needed.
import type { Command } from 'commander'
import { addCommand, addFamily, readBetween, readUuid, withActor } from '../command.ts'
import type { Terminal } from '../terminal.ts'

export function threeDsContract(family: Command, terminal: Terminal): void {
  addCommand(family, 'add', 'makes a contract and prints its id')
    .argument('<name>', 'a name that is unique within the entity')
    .requiredOption('--entity <uuid>', 'the merchant entity that owns it', readUuid)
    .requiredOption('--directory-server <url>', 'the directory server to which authentication requests go')
    .requiredOption('--acquirer-bin <digits>', 'BIN of the acquirer, up to 11 digits')
    .requiredOption('--acquirer-merchant-id <id>', 'the id of the merchant at the acquirer')
    .requiredOption('--mcc <digits>', 'merchant category code, 4 digits')
    .requiredOption('--country <code>', 'country of the merchant, ISO 3166-1 alpha-2 or alpha-3')
    .requiredOption('--requestor-url <url>', 'URL of the shop')
    .requiredOption('--notification-url <url>', 'the URL to which browsers return after a challenge')
    .option('--merchant-name <name>', 'the name that cardholders see (default: the name)')
    .option('--requestor-id <id>', 'requestor id from the directory server (default: the contract id, shortened)')
    .option('--requestor-name <name>', 'requestor name (default: the merchant name)')
    .option('--issuer <id>', '`iss` of JWTs (default: the contract id)')
    .option('--org-unit-id <id>', '`OrgUnitId` of JWTs (default: the entity)')
    .option('--jwt-key <file>', 'the HS256 key of the JWTs, base64 or hex (default: a new key)')
    .action(async (name, options) =>
      (await import('../commands/threeds-contract/contract.ts')).add(terminal, name, options),
    )
  addCommand(family, 'list', 'lists contracts')
    .option('--entity <uuid>', 'list only those of this entity', readUuid)
    .action(async options => (await import('../commands/threeds-contract/contract.ts')).list(terminal, options))
  const load = () => import('../commands/threeds-contract/key.ts')
  const keys = addFamily(family, 'key', 'the key of a contract’s JWTs')
  withActor(
    addCommand(keys, 'rotate <contract>', 'puts another key in place; the former one verifies JWTs for some hours more')
      .option('--hours <n>', 'how long the former key is still valid', readBetween(2, 2_160), 24)
      .option('--at-once', 'the former key ends now, as after a leak; JWTs that it signed are refused')
      .option('--jwt-key <file>', 'the new HS256 key, base64 or hex (default: a new key)'),
  ).action(async (id, options) => (await load()).rotate(terminal, readUuid(id), options))
  withActor(addCommand(keys, 'revoke <contract>', 'ends the former key now; the key in use stays')).action(
    async (id, options) => (await load()).revoke(terminal, readUuid(id), options),
  )
}
