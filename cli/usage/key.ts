// Defines the arguments and options of `tokenmill key`. The code that runs it is loaded only when it is needed.
import { type Command, InvalidArgumentError } from 'commander'
import { addCommand, addFamily, collect, readBetween, readUuid, withActor } from '../command.ts'
import type { Terminal } from '../terminal.ts'

/** More shares than this have no use, and a threshold of one would be no split. */
const SHARES_MAX = 16

export function key(family: Command, terminal: Terminal): void {
  const list = addCommand(
    family,
    'list',
    'lists data keys: state, age, seals, and when each should be replaced',
  ).action(async options => (await import('../commands/key/list.ts')).list(terminal, options))
  addCommand(list, 'kek', 'lists key-encryption keys: what each wraps, who has it, until when backups need it').action(
    async options => (await import('../commands/key/list-keks.ts')).listKeks(terminal, options),
  )
  addCommand(list, 'gateway', 'lists the keys of gateways, and which data keys each opens').action(async options =>
    (await import('../commands/key/gateway.ts')).listGateways(terminal, options),
  )
  const make = addFamily(family, 'make', 'makes a key')
  addCommand(make, 'kek <file>', 'makes a key-encryption key in a new file, for a rotation to it').action(
    async (file, options) => (await import('../commands/key/make-kek.ts')).makeKek(terminal, file, options),
  )
  withActor(
    addCommand(
      family,
      'rotate <key>',
      'replaces a key while all roles work on: the purpose of a data key, kek or signing',
    ),
  )
    .option('--to <id>', 'for kek: the next key, by its id or by the URI with which TOKENMILL_KEK names it')
    .option('--now', 'for signing: sign with the announced key at once, not 7 days after it was announced')
    .option('--yes', 'with --now: do not ask, though some readers of results may not know the key')
    .option('--cancel', 'for signing: take the announcement back; the key never signs')
    .option(
      '--without <gateway>',
      'for a data key that gateways know: do not wait for this gateway, by its id, or for `all`; may be repeated',
      collect(readGateway),
    )
    .action(async (name, options) => (await import('../commands/key/rotate.ts')).rotate(terminal, name, options))
  const forget = addFamily(family, 'forget', 'forgets a key that is needed no more')
  withActor(addCommand(forget, 'kek <id>', 'forgets a key-encryption key that wraps nothing, and that no backup needs'))
    .option('--backups-are-gone', 'no backup from before its rotation is left')
    .action(async (id, options) => (await import('../commands/key/forget-kek.ts')).forgetKek(terminal, id, options))
  withActor(
    addCommand(forget, 'gateway <kid>', 'forgets the key of a gateway whose host is gone or was broken into'),
  ).action(async (kid, options) => (await import('../commands/key/gateway.ts')).forgetGateway(terminal, kid, options))
  withActor(
    addCommand(
      family,
      'compromise <purpose>',
      'answers that somebody else may have a data key: replaces it, lists what it exposed, seals anew',
    ),
  )
    .option('--out <file>', 'a new file for the list of the rows that it exposed (mode 0600)')
    .option('--key-version <version>', 'a former version, instead of the one in use', readVersion)
    .option('--values-change', 'for analytics: the values of cards may change')
    .option('--yes', 'do not ask')
    .action(async (purpose, options) =>
      (await import('../commands/key/compromise.ts')).compromise(terminal, purpose, options),
    )
  withActor(
    addCommand(family, 'reseal <purpose>', 'lets the workers seal everything anew under the key in use, or shows it'),
  )
    .option('--follow', 'show how far it is, until it ends')
    .option('--cancel', 'cancel it; the command without this option goes on with it')
    .action(async (purpose, options) => (await import('../commands/key/reseal.ts')).reseal(terminal, purpose, options))
  withActor(addCommand(family, 'destroy <purpose>', 'destroys a version of a data key that nothing needs any more'))
    .argument('<version>', 'the version, as `key list` shows it', readVersion)
    .option('--backups-are-gone', 'no backup from before the last re-encryption is left')
    .option('--yes', 'do not ask')
    .action(async (purpose, version, options) =>
      (await import('../commands/key/destroy.ts')).destroy(terminal, purpose, version, options),
    )
  withActor(
    addCommand(family, 'confirm <id>', 'confirms, as the second operator, an act on keys that another one asked for'),
  )
    .option('--yes', 'do not ask')
    .action(async (id, options) => (await import('../commands/key/confirm.ts')).confirm(terminal, id, options))
  withActor(
    addCommand(family, 'retire <purpose>', 'looks for cards under a former version of the fingerprint key no more'),
  )
    .argument('<version>', 'the version, as `key list` shows it', readVersion)
    .option('--forget', 'retire it though tokens are known under it alone: their cards get second tokens')
    .action(async (purpose, version, options) =>
      (await import('../commands/key/retire.ts')).retire(terminal, purpose, version, options),
    )
  withActor(addCommand(family, 'backup', 'splits the key-encryption key into shares, of which some restore it'))
    .requiredOption('--shares <count>', 'how many shares restore the key', readBetween(2, SHARES_MAX))
    .requiredOption('--of <count>', 'how many shares are made', readBetween(2, SHARES_MAX))
    .requiredOption('--out <folder>', 'folder for the files of the shares (each of mode 0600)')
    .action(async options => (await import('../commands/key/backup.ts')).backup(terminal, options))
  withActor(addCommand(family, 'restore [share_files...]', 'makes the file of a key-encryption key from its shares'))
    .requiredOption('--out <file>', 'file for the key (mode 0600); an existing file is never overwritten')
    .option('--offline', 'open no database: for a host without one; no audit row is written')
    .action(async (files, options) => (await import('../commands/key/restore.ts')).restore(terminal, files, options))
  withActor(
    addCommand(
      family,
      'restored',
      'lets the lives of keys hold that a restored backup or a promoted standby brought back',
    ),
  )
    .option('--yes', 'do not ask')
    .action(async options => (await import('../commands/key/restored.ts')).restored(terminal, options))
}

function readVersion(text: string): number {
  if (!/^[1-9]\d{0,4}$/.test(text)) throw new InvalidArgumentError('It is not a version, such as 1.')
  return Number(text)
}

function readGateway(text: string): string {
  return text === 'all' ? text : readUuid(text)
}
