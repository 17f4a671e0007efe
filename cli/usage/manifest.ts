// Defines the arguments and options of the commands about manifests. The code that runs them is loaded only when it is
// needed.
import { type Command, InvalidArgumentError } from 'commander'
import { MIGRATION_NAME } from '../../src/job/choices.ts'
import { holdsPossiblePan } from '../../src/token/possible-pan.ts'
import { addCommand, collect, withActor } from '../command.ts'
import { EXIT, Stop } from '../exit.ts'
import type { Terminal } from '../terminal.ts'

export function manifest(family: Command, terminal: Terminal): void {
  addCommand(family, 'verify <file>', 'checks signatures, digests and counts of a manifest or of a sign-off pack')
    .option('--client <file>', 'file of the client that signed it (default: dev-client.json of the data directory)')
    .option(
      '--key <file>',
      'public JWK of a client that signed, in place of its file; may be repeated',
      collect(String),
    )
    .action(async (file, options) => (await import('../commands/manifest/verify.ts')).verify(terminal, file, options))
  packCommand(family, terminal)
  keyCommand(family, 'total-key', 'makes the key of a total, and encrypts it for the sender of the cards')
    .requiredOption('--to <file>', "the sender's OpenPGP public key")
    .requiredOption('--out <file>', 'file of the encrypted key (armored)')
    .action(async options => (await import('../commands/manifest/total-key.ts')).totalKey(terminal, options))
  migrationOption(
    addCommand(family, 'total <batch...>', "computes the vault's half of the total that both sides can compute"),
  )
    .option('--client <id>', 'the client, if several have a batch with one of these ids')
    .action(async (batches, options) =>
      (await import('../commands/manifest/total.ts')).total(terminal, batches, options),
    )
  keyCommand(family, 'sign-off', 'destroys the key of a total, once both sides have signed').action(async options =>
    (await import('../commands/manifest/total-key.ts')).signOff(terminal, options),
  )
}

function packCommand(family: Command, terminal: Terminal): void {
  addCommand(family, 'pack [batches...]', 'makes the sign-off pack of a migration: NAME.pack.json and NAME.pack.pdf')
    .option('--migration <name>', 'name of the migration (default: that of the manifests)', readMigration)
    .option('--folder <folder>', 'where manifests are looked for by batch or migration', '.')
    .option('--out <file>', 'file of the pack (default: NAME.pack.json beside the manifests)')
    .option('--client <file>', 'file of the client that signs it (default: dev-client.json of the data directory)')
    .option('--key <file>', 'public JWK of another client that signed a manifest; may be repeated', collect(String))
    .option(
      '--dry-run <manifest>',
      'manifest of a dry run (default: FILE.dry-run.manifest.json); may be repeated',
      collect(String),
    )
    .option('--decisions <file>', 'CSV of decisions: line, item or reference, decision, by, on, note')
    .option('--their-total <sha256|file>', "the counterparty's total, or the file that total.py printed")
    .option('--their-count <rows>', 'the rows of --their-total', readRows)
    .option('--no-total', 'make the pack without the total')
    .option('--signature <file>', "check and keep the counterparty's OpenPGP signature over the JSON that was made")
    .option('--counterparty <file>', 'OpenPGP public key of the counterparty')
    .action(async (batches, options) => (await import('../commands/manifest/pack.ts')).pack(terminal, batches, options))
}

function readRows(text: string): number {
  if (!/^\d{1,12}$/.test(text)) throw new InvalidArgumentError('It is not a number of rows.')
  return Number(text)
}

function keyCommand(family: Command, name: string, description: string): Command {
  return withActor(migrationOption(addCommand(family, name, description)))
}

function migrationOption(command: Command): Command {
  return command.requiredOption('--migration <name>', 'name of the migration', readMigration)
}

function readMigration(text: string): string {
  if (!MIGRATION_NAME.test(text))
    throw new InvalidArgumentError('Give 1 to 64 letters, digits, dots, dashes and underscores.')
  // The store, the audit and names of files have it in clear. The other error would repeat it.
  if (holdsPossiblePan(text))
    throw new Stop('The name of --migration could be a card number. Choose another.', EXIT.usage)
  return text
}
