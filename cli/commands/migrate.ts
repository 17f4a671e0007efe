// `tokenmill migrate FILE`: reads the options, runs the producer and prints the result.
import { readFile } from 'node:fs/promises'
import { type Command, InvalidArgumentError, Option } from 'commander'
import type { MigrateOptions } from '../../producers/migrate/options.ts'
import { migrate, type Summary } from '../../producers/migrate/run.ts'
import { FileError } from '../../producers/rows/file-error.ts'
import { type ColumnMap, parseMap } from '../../producers/rows/layout.ts'
import { systemClock } from '../../src/clock.ts'
import { RECORD_KINDS } from '../../src/job/catalogue.ts'
import { OUTCOMES } from '../../src/job/outcome.ts'
import { CHUNK, ON_CONFLICT, ON_EXPIRED } from '../../src/job/token-batch.ts'
import { lowerPriority } from '../../src/low-priority.ts'
import { Secret } from '../../src/secret.ts'
import { addCommand, collect, type JsonOption, readUuid } from '../command.ts'
import { EXIT, Stop } from '../exit.ts'
import { openSession, type Session } from '../open/open.ts'
import { type GiveUpOption, giveUpOption, openProducer, waitingOf } from '../open/producer.ts'
import { stopper } from '../process/stopper.ts'
import { facts, print, say, type Terminal } from '../terminal.ts'

interface Options extends JsonOption, GiveUpOption {
  client?: string
  scope?: string
  format?: 'csv' | 'ndjson'
  decryptKey?: string
  verifyKey?: string
  map?: string
  ignoreUnknown?: boolean
  echo?: string[]
  results?: string
  manifest?: string
  dryRun?: boolean
  expect?: string
  onConflict: MigrateOptions['onConflict']
  onExpired: MigrateOptions['onExpired']
  chunk: number
  inFlight: number
  batchId?: string
  recordKind: MigrateOptions['recordKind']
  schemeTokens?: boolean
  again?: boolean
}

export function registerMigrate(program: Command, terminal: Terminal): void {
  addCommand(
    program,
    'migrate <file>',
    'makes a token for every card of a file (.csv, .ndjson; .gz; .pgp, .gpg, .asc; - for standard input)',
  )
    .option('--client <file>', "the client's credentials (default: dev-client.json of the data directory)")
    .option('--scope <uuid>', "the token scope (default: the client file's)", readUuid)
    .addOption(
      new Option('--format <name>', 'format of the file, if its name does not say it').choices(['csv', 'ndjson']),
    )
    .option('--decrypt-key <file>', 'OpenPGP private key; TOKENMILL_PGP_PASSPHRASE holds its passphrase')
    .option('--verify-key <file>', 'OpenPGP public key that must have signed the file')
    .option('--map <file>', 'JSON that renames columns: {"column of the file": "tokenmill column" or null}')
    .option('--ignore-unknown', 'drop columns that are unknown and not mapped')
    .option('--echo <column>', 'copy a column into the results; may be repeated', collect(String))
    .option('--results <file>', 'CSV file of the results (default: FILE.results.csv)')
    .option('--manifest <file>', 'file of the manifest (default: FILE.manifest.json)')
    .option('--dry-run', 'predict every outcome and change nothing; writes FILE.dry-run.*')
    .option('--expect <manifest>', 'manifest of a dry run: list every count that differs from it')
    .addOption(
      new Option('--on-conflict <policy>', 'what to do if the store has other data for the card')
        .choices(ON_CONFLICT)
        .default('update'),
    )
    .addOption(
      new Option('--on-expired <policy>', 'what to do with an expired card').choices(ON_EXPIRED).default('import'),
    )
    .option('--chunk <n>', 'records per job', readBetween(1, CHUNK.recordsMax), CHUNK.recordsDefault)
    .option('--in-flight <n>', 'number of chunks sent ahead of the first unanswered one', readBetween(1, 256), 16)
    .option('--batch-id <id>', 'id of the batch (default: from the file, the scope and the options that decide)')
    .addOption(
      new Option('--record-kind <kind>', 'what each row of the file is').choices(RECORD_KINDS).default('token-create'),
    )
    .option('--scheme-tokens', 'also provision a scheme token for each token')
    .addOption(giveUpOption())
    .option('--again', 'run the same file as a new batch')
    .action((file: string, options: Options) => run(terminal, file, options))
}

export function readBetween(least: number, most: number): (text: string) => number {
  return text => {
    const value = Number(text)
    if (!/^\d{1,6}$/.test(text) || value < least || value > most)
      throw new InvalidArgumentError(`It is not a whole number from ${least} to ${most}.`)
    return value
  }
}

async function run(terminal: Terminal, file: string, options: Options): Promise<void> {
  lowerPriority()
  const session = openSession(terminal)
  const stop = stopper(session)
  try {
    const summary = await migrateFile(session, file, options, stop.signal)
    report(session, summary, options)
    const status = statusOf(summary)
    if (status !== EXIT.ok) process.exitCode = status
  } finally {
    stop.leave()
    await session.lifetime.close()
  }
}

/** The work of the command; the demo calls it, too. */
export async function migrateFile(
  session: Session,
  file: string,
  options: Options,
  signal: AbortSignal,
): Promise<Summary> {
  const { terminal, log } = session
  const map = options.map === undefined ? undefined : await readMap(options.map)
  const producing = await openProducer(session, options.client, ['bulk'])
  const { credentials } = producing
  const passphrase = terminal.env['TOKENMILL_PGP_PASSPHRASE']
  return migrate(
    {
      file,
      format: options.format,
      scope: options.scope ?? (options.recordKind === 'token-create' ? credentials.tokenScope : undefined),
      decryptKeyFile: options.decryptKey,
      passphrase: passphrase === undefined ? undefined : new Secret(passphrase),
      verifyKeyFile: options.verifyKey,
      map,
      ignoreUnknown: options.ignoreUnknown ?? false,
      echo: options.echo ?? [],
      results: options.results,
      manifest: options.manifest,
      dryRun: options.dryRun ?? false,
      expect: options.expect,
      onConflict: options.onConflict,
      onExpired: options.onExpired,
      chunk: options.chunk,
      inFlight: options.inFlight,
      batchId: options.batchId,
      recordKind: options.recordKind,
      schemeTokens: options.schemeTokens ?? false,
      again: options.again ?? false,
    },
    {
      ...producing,
      log,
      clock: systemClock,
      stream: terminal.stderr as NodeJS.WriteStream,
      stop: signal,
      ...waitingOf(session, options),
    },
  )
}

export async function readMap(path: string): Promise<ColumnMap> {
  const text = await readFile(path, 'utf8').catch(() => {
    throw new FileError('usage', `${path} cannot be read.`, 'Give --map a JSON file.')
  })
  return parseMap(path, text)
}

export function statusOf({ complete, counts }: Pick<Summary, 'complete' | 'counts'>): number {
  if (!complete) return EXIT.failure
  return counts.REJECTED + counts.FAILED + counts.CANCELLED > 0 ? EXIT.incomplete : EXIT.ok
}

export function report({ terminal }: Pick<Session, 'terminal'>, summary: Summary, options: JsonOption): void {
  const { batchId, variant, rows, counts, results, manifest, complete, ms, differences } = summary
  const outcomes = Object.fromEntries(OUTCOMES.map(outcome => [outcome.toLowerCase(), counts[outcome]]))
  const value = {
    batch_id: batchId,
    variant,
    complete,
    rows,
    ...outcomes,
    ms,
    results,
    manifest: complete ? manifest : undefined,
    differences,
  }
  const shown = Object.entries(outcomes).filter(([, n]) => n > 0)
  const text = facts({
    batch: batchId,
    rows: `${rows} in ${(ms / 1000).toFixed(1)} s`,
    ...Object.fromEntries(shown.map(([outcome, n]) => [outcome, String(n)])),
    results,
    manifest: complete ? manifest : undefined,
  })
  print(terminal, options, value, text)
  for (const { outcome, expected, found } of differences)
    say(terminal, `tokenmill: ${outcome}: ${expected} expected, ${found} found`)
  if (!complete) throw new Stop('stopped before the end; run the same command again to continue')
}
