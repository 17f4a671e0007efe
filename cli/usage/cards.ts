// Defines the arguments and options of `tokenmill capture-key` and `tokenmill encrypt-card`. The code that runs them is
// loaded only when it is needed.
import { type Command, InvalidArgumentError, Option } from 'commander'
import { ALIAS } from '../../src/job/choices.ts'
import { CAPTURE_KEY_TYPES } from '../../src/store/access/capture-keys.ts'
import { addCommand, jsonOption, readBetween, readCount, readMoment, readUuid, withActor } from '../command.ts'
import type { Terminal } from '../terminal.ts'

export function captureKey(family: Command, terminal: Terminal): void {
  addCommand(family, 'add', 'makes or imports a key pair and prints the public key (JWK or armor)')
    .argument('<alias>', 'the name by which requests refer to it (public_key_alias)', readAlias)
    .requiredOption('--entity <uuid>', 'the merchant entity that owns it', readUuid)
    .addOption(new Option('--type <type>', 'type of the key pair (default: jwe-rsa)').choices(CAPTURE_KEY_TYPES))
    .option('--import <file>', 'import this private key: JWK, PKCS #8 PEM, or armored OpenPGP')
    .action(async (alias, options) => (await import('../commands/capture-key.ts')).add(terminal, alias, options))
  addCommand(family, 'list', 'lists capture keys')
    .option('--entity <uuid>', 'list only those of this entity', readUuid)
    .action(async options => (await import('../commands/capture-key.ts')).list(terminal, options))
  addCommand(family, 'show <alias>', 'prints the public key to encrypt to, with the signed statement about it').action(
    async (alias, options) => (await import('../commands/capture-key.ts')).show(terminal, alias, options),
  )
  withActor(addCommand(family, 'rotate <alias>', 'adds a key to an alias; cards to its former keys open as before'))
    .option('--import <file>', 'import this private key: JWK, PKCS #8 PEM, or armored OpenPGP')
    .option('--again', 'also if the newest key was made within the last hour')
    .action(async (alias, options) => (await import('../commands/capture-line.ts')).rotate(terminal, alias, options))
  withActor(addCommand(family, 'retire <alias>', 'retires a key; its private half is destroyed 8 days later'))
    .option('--key <number>', 'which key, if the alias has several active ones', readCount)
    .option('--until <time>', 'the last time at which senders may encrypt to it (default: now)', readMoment)
    .action(async (alias, options) => (await import('../commands/capture-line.ts')).retire(terminal, alias, options))
  withActor(addCommand(family, 'turning', 'lets the capture keys of an entity turn by themselves'))
    .argument('<entity>', 'the UUID of the entity', readUuid)
    .option('--every <days>', 'replace a key when it is so many days old, 30 to 3650', readBetween(30, 3650))
    .option('--off', 'only by command')
    .action(async (entity, options) => (await import('../commands/capture-line.ts')).turning(terminal, entity, options))
}

function readAlias(text: string): string {
  if (ALIAS.test(text)) return text
  throw new InvalidArgumentError('An alias is 1 to 128 letters, digits, ".", "_" or "-".')
}

export function encryptCard(command: Command, terminal: Terminal): void {
  command
    .addOption(jsonOption())
    .requiredOption('--alias <alias>', 'alias of the capture key')
    .option('--with-cvv', 'keep the cvv (default: leave it out)')
    .option('--client <file>', "take the public key from this client's file, not from the store")
    .action(async options => (await import('../commands/encrypt-card.ts')).encrypt(terminal, options))
}
