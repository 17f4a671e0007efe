// Defines the arguments and options of `tokenmill client`. The code that runs it is loaded only when it is needed.
import { Argument, type Command, InvalidArgumentError, Option } from 'commander'
import { ROLES, type Role } from '../../src/job/choices.ts'
import { NAME_RULES } from '../../src/job/envelope/names.ts'
import { addCommand, addFamily, collect, readMoment, readUuid } from '../command.ts'
import type { Terminal } from '../terminal.ts'

export function client(family: Command, terminal: Terminal): void {
  addCommand(family, 'add', 'registers a client and prints its credentials; the API key is shown only once')
    .argument('<name>', 'name of the client, also of its directory', readName)
    .requiredOption(
      '--entity <uuid>',
      'a merchant entity for which the client acts; may be repeated',
      collect(readUuid),
    )
    .requiredOption('--roles <a,b>', `roles of the client: ${ROLES.join(', ')}`, readRoles)
    .option('--public-key <jwk file>', "the client's public key (default: a new Ed25519 key pair)")
    .addOption(
      new Option(
        '--names <rule>',
        'numeric: ids and references of its jobs are long numbers and may look like card numbers',
      ).choices(NAME_RULES),
    )
    .option('--out <dir>', 'directory for its files (default: clients/NAME in the data directory)')
    .action(async (name, options) => (await import('../commands/client/client.ts')).add(terminal, name, options))
  addCommand(family, 'list', 'lists clients').action(async options =>
    (await import('../commands/client/client.ts')).list(terminal, options),
  )
  addCommand(family, 'revoke <client>', 'revokes a client for good, within 10 s on every worker').action(
    async (word, options) => (await import('../commands/client/client.ts')).revoke(terminal, word, options),
  )
  addCommand(
    family,
    'names',
    'sets whether ids and references of a client may be long numbers that look like card numbers',
  )
    .argument('<client>', 'id or name of the client')
    .addArgument(new Argument('<rule>', 'checked: refuse such values; numeric: allow them').choices(NAME_RULES))
    .action(async (word, rule, options) =>
      (await import('../commands/client/client.ts')).setNames(terminal, word, rule, options),
    )
  addKeyFamily(family, terminal)
  const apiKeys = addFamily(family, 'api-key', 'API keys')
  addCommand(apiKeys, 'rotate <client>', 'replaces the API key of a client; the new key is shown only once').action(
    async (word, options) => (await import('../commands/client/client.ts')).rotate(terminal, word, options),
  )
}

/** Reads a client's name. It is checked because it also becomes the name of a directory. */
function readName(text: string): string {
  if (/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(text)) return text
  throw new InvalidArgumentError(
    'A name is 1 to 64 letters, digits, ".", "_" or "-", and begins with a letter or digit.',
  )
}

function readRoles(text: string): Role[] {
  const words = [...new Set(text.split(',').map(word => word.trim()))]
  const unknown = words.find(word => !ROLES.includes(word as Role))
  if (unknown !== undefined) throw new InvalidArgumentError(`Roles are ${ROLES.join(', ')}.`)
  return words as Role[]
}

function addKeyFamily(family: Command, terminal: Terminal): void {
  const keys = addFamily(family, 'key', 'signing keys of a client')
  addCommand(keys, 'add <client>', 'adds a signing key to a client; at most two are active')
    .option('--public-key <jwk file>', "the client's public key (default: a new Ed25519 key pair)")
    .option('--out <dir>', 'directory for the private JWK (default: clients/NAME in the data directory)')
    .action(async (word, options) => (await import('../commands/client/client-key.ts')).add(terminal, word, options))
  addCommand(keys, 'list <client>', 'lists all keys of a client, including former ones').action(async (word, options) =>
    (await import('../commands/client/client-key.ts')).list(terminal, word, options),
  )
  addCommand(keys, 'retire <client> <kid>', 'sets the time until which a key is accepted')
    .requiredOption('--until <time>', 'a time such as 2030-01-31T12:00:00Z; jobs live for up to 7 days', readMoment)
    .action(async (word, kid, options) =>
      (await import('../commands/client/client-key.ts')).retire(terminal, word, kid, options),
    )
  addCommand(keys, 'revoke <client> <kid>', 'revokes a key for good, within 10 s on every worker').action(
    async (word, kid, options) =>
      (await import('../commands/client/client-key.ts')).revoke(terminal, word, kid, options),
  )
}
