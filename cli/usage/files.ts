// Defines the arguments and options of the commands that read files: `migrate`, `inspect`, `profile`, `submit`.
// The code that runs them is loaded only when it is needed.
import { type Command, InvalidArgumentError, Option } from 'commander'
import { CHUNK, MIGRATION_NAME, ON_CONFLICT, ON_EXPIRED, ON_ORPHAN, RECORD_KINDS } from '../../src/job/choices.ts'
import {
  addCommand,
  collect,
  giveUpOption,
  jsonOption,
  readBetween,
  readCount,
  readRowsMax,
  readUuid,
} from '../command.ts'
import type { Terminal } from '../terminal.ts'

export function migrate(command: Command, terminal: Terminal): void {
  command
    .addOption(jsonOption())
    .option('--client <file>', "the client's credentials (default: dev-client.json of the data directory)")
    .option('--scope <uuid>', "the token scope (default: the client file's)", readUuid)
    .addOption(
      new Option('--format <name>', 'format of the file, if its name does not say it').choices(['csv', 'ndjson']),
    )
    .option('--from <profile>', 'read a provider’s file by this profile: its name or a file (see `tokenmill profile`)')
    .option(
      '--provider-account <name>',
      'account at the provider that the file is of, where the profile does not say it',
    )
    .option('--decrypt-key <file>', 'OpenPGP private key; TOKENMILL_PGP_PASSPHRASE holds its passphrase')
    .option('--verify-key <file>', 'OpenPGP public key that must have signed the file')
    .option('--map <file>', 'JSON that renames columns: {"column of the file": "tokenmill column" or null}')
    .option('--ignore-unknown', 'drop columns that are unknown and not mapped')
    .option('--echo <column>', 'copy a column into the results; may be repeated', collect(String))
    .option('--results <file>', 'CSV file of the results (default: FILE.results.csv)')
    .option('--manifest <file>', 'file of the manifest (default: FILE.manifest.json)')
    .option('--rejects <file>', 'CSV file of the rejected and failed rows, to correct the export by')
    .option('--return <file>', 'file that goes back to the provider, in the shape that the profile says')
    .option('--dry-run', 'predict every outcome and change nothing; writes FILE.dry-run.*')
    .option('--only <file>', 'take only the rows that this file lists: references or customers, or a plan of `diff`')
    .option('--allow-missing', 'end well even if the file lacks rows that --only lists')
    .option('--migration <name>', 'name of the migration of which the files are the parts', readMigration)
    .option('--expect <manifest>', 'manifest of a dry run: list every count that differs from it')
    .addOption(
      new Option('--on-conflict <policy>', 'what to do if the store has other data for the card')
        .choices(ON_CONFLICT)
        .default('update'),
    )
    .option(
      '--source-time <column|date>',
      'when the data was given, with --on-conflict newest: a column of the file, or a day or time of the whole file',
    )
    .addOption(
      new Option('--on-expired <policy>', 'what to do with an expired card').choices(ON_EXPIRED).default('import'),
    )
    .addOption(
      new Option(
        '--on-orphan <policy>',
        'what to do with a token whose last owner moves to another one (default: keep)',
      ).choices(ON_ORPHAN),
    )
    .option('--relink', 'let an owner with another number keep its token, which gets the number')
    .option(
      '--chunk <n>',
      `records per job (default: as the batch was begun, or ${CHUNK.recordsDefault})`,
      readBetween(1, CHUNK.recordsMax),
    )
    .option('--in-flight <n>', 'number of chunks that may be unanswered at once', readBetween(1, 256), 8)
    .option('--batch-id <id>', 'id of the batch (default: from the file, the scope and the options that decide)')
    .addOption(
      new Option('--record-kind <kind>', 'what each row of the file is').choices(RECORD_KINDS).default('token-create'),
    )
    .option('--scheme-tokens', 'also provision a scheme token for each token')
    .addOption(giveUpOption())
    .option('--again', 'run the same file as a new batch')
    .option(
      '--limit <rows>',
      'stop after so many rows, in whole chunks; the same command without it goes on',
      readCount,
    )
    .option('--max-rejected <n>', 'stop once more rows are rejected: a number, or a share such as 2%', readRowsMax)
    .action(async (files: string[], options) => {
      const [file, ...others] = files
      if (others.length > 0) await (await import('../commands/migrate/parts.ts')).run(terminal, files, options)
      else await (await import('../commands/migrate.ts')).run(terminal, file ?? '', options)
    })
  // Its own options stand behind the word `diff`, and some have the same names.
  migrateDiff(command.enablePositionalOptions(), terminal)
}

function readMigration(text: string): string {
  if (!MIGRATION_NAME.test(text))
    throw new InvalidArgumentError('It has 1 to 64 letters, digits, dots, dashes and underscores.')
  return text
}

export function inspect(command: Command, terminal: Terminal): void {
  command
    .addOption(jsonOption())
    .option('--from <profile>', 'read it by this profile: its name or a file (default: what it seems to be)')
    .option('--profile <file>', 'write a profile of what it seems to be, to correct and use with migrate --from')
    .option('--decrypt-key <file>', 'OpenPGP private key; TOKENMILL_PGP_PASSPHRASE holds its passphrase')
    .option('--verify-key <file>', 'OpenPGP public key that must have signed the file')
    .action(async (file, options) => (await import('../commands/inspect.ts')).run(terminal, file, options))
}

export function profile(family: Command, terminal: Terminal): void {
  addCommand(family, 'list', 'lists the profiles that tokenmill has').action(async options =>
    (await import('../commands/profile.ts')).list(terminal, options),
  )
  addCommand(family, 'show <name>', 'prints a profile, to use as it is or to change').action(async name =>
    (await import('../commands/profile.ts')).show(terminal, name),
  )
  addCommand(family, 'check <profile> [file]', 'checks a profile, and shows what it makes of a file’s first rows')
    .option('--decrypt-key <file>', 'OpenPGP private key; TOKENMILL_PGP_PASSPHRASE holds its passphrase')
    .option('--verify-key <file>', 'OpenPGP public key that must have signed the file')
    .action(async (name, file, options) =>
      (await import('../commands/profile.ts')).check(terminal, name, file, options),
    )
}

export function submit(command: Command, terminal: Terminal): void {
  command
    .addOption(jsonOption())
    .option('--client <file>', "the client's credentials (default: dev-client.json of the data directory)")
    .addOption(giveUpOption())
    .action(async (file, options) => (await import('../commands/submit.ts')).run(terminal, file, options))
}

/**
 * A diff refuses `newest`: the rows that it leaves out wouldn't be migrated, so the store wouldn't learn their source
 * times.
 */
const DIFF_POLICIES = ON_CONFLICT.filter((policy: string) => policy !== 'newest')

function migrateDiff(family: Command, terminal: Terminal): void {
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
    .addOption(new Option('--on-conflict <policy>', 'as migrate will be run').choices(DIFF_POLICIES).default('update'))
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
