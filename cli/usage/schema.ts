// Defines the arguments and options of `tokenmill schema`. The code that runs it is loaded only when it is needed.
import { Argument, type Command } from 'commander'
import type { LoginPurpose } from '../../src/store/access/logins.ts'
import { addCommand } from '../command.ts'
import type { Terminal } from '../terminal.ts'

const PURPOSES = { gateway: true, worker: true, console: true, reader: true } satisfies Record<LoginPurpose, true>
const LOGIN =
  'makes a database user with the rights of a role only, and a file with its DATABASE_URL; a second run changes nothing'

export function schema(family: Command, terminal: Terminal): void {
  addCommand(family, 'upgrade', 'creates or upgrades the schema and missing keys; a second run changes nothing')
    .option('--make-kek <file>', 'make a key-encryption key in this file, if the database has none yet')
    .action(async options => (await import('../commands/schema.ts')).upgradeStore(terminal, options))
  addCommand(family, 'login', LOGIN)
    .addArgument(new Argument('<for>', 'who will use this database user').choices(Object.keys(PURPOSES)))
    .requiredOption('--out <file>', 'file for the DATABASE_URL of the user (mode 0600)')
    .option('--rotate', 'set another password for an existing user')
    .option('--print-sql', 'print the statements for an administrator, and change nothing in the database')
    .action(async (purpose, options) => (await import('../commands/schema-login.ts')).login(terminal, purpose, options))
}
