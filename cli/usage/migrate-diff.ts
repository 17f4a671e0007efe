// Defines the arguments and options of `tokenmill migrate diff`. The code that runs it is loaded only when it is
// needed.
import { type Command, Option } from 'commander'
import { CHUNK, ON_CONFLICT, ON_EXPIRED, ON_ORPHAN } from '../../src/job/choices.ts'
import { addCommand, readBetween, readCount, readRowsMax, readUuid } from '../command.ts'
import type { Terminal } from '../terminal.ts'

/**
 * A diff refuses `newest`: the rows that it leaves out wouldn't be migrated, so the store wouldn't learn their source
 * times.
 */
const POLICIES = ON_CONFLICT.filter((policy: string) => policy !== 'newest')

export function migrateDiff(family: Command, terminal: Terminal): void {
  addCommand(
    family,
    'diff <file...>',
    'lists what a new file, or the parts of one export, would change, for --only, and changes nothing',
  )
    .option(
      '--complete',
      'the files have every card of their accounts: list the owners who are gone, for their release',
    )
    .addOption(
      new Option('--max-removed <n>', 'stop if more owners are gone: a number, or a share of the stored ones')
        .argParser(readRowsMax)
        .default({ share: 0.01 }, '1%'),
    )
    .option('--client <file>', "the client's credentials (default: dev-client.json of the data directory)")
    .option('--scope <uuid>', "the token scope (default: the client file's)", readUuid)
    .addOption(
      new Option('--format <name>', 'format of the file, if its name does not say it').choices(['csv', 'ndjson']),
    )
    .option('--from <profile>', 'read a provider’s file by this profile: its name or a file (see `tokenmill profile`)')
    .option('--provider-account <name>', 'account at the provider that the file is of')
    .option('--decrypt-key <file>', 'OpenPGP private key; TOKENMILL_PGP_PASSPHRASE holds its passphrase')
    .option('--verify-key <file>', 'OpenPGP public key that must have signed the file')
    .option('--map <file>', 'JSON that renames columns: {"column of the file": "tokenmill column" or null}')
    .option('--ignore-unknown', 'drop columns that are unknown and not mapped')
    .option('--only <file>', 'compare only the rows and owners that this file lists')
    .option('--allow-missing', 'end well even if the files lack rows that --only lists')
    .addOption(new Option('--on-conflict <policy>', 'as migrate will be run').choices(POLICIES).default('update'))
    .addOption(new Option('--on-expired <policy>', 'as migrate will be run').choices(ON_EXPIRED).default('import'))
    .addOption(
      new Option('--on-orphan <policy>', 'as migrate will be run; the releases say it, too').choices(ON_ORPHAN),
    )
    .option('--relink', 'as migrate will be run')
    .option('--chunk <n>', 'records per job', readBetween(1, CHUNK.recordsMax), CHUNK.recordsDefault)
    .option('--in-flight <n>', 'number of chunks sent ahead of the first unanswered one', readBetween(1, 256), 8)
    .addOption(
      new Option('--give-up-after <seconds>', 'end with 1 after so long without any answer (default: wait)').argParser(
        readCount,
      ),
    )
    .action(async (files, options) => (await import('../commands/migrate/diff.ts')).run(terminal, files, options))
}
