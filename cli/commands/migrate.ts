// `tokenmill migrate FILE`: reads the options, runs the producer and prints the result.
import { readFile } from 'node:fs/promises'
import type { FileRunDeps } from '../../producers/file-run.ts'
import type { MigrateOptions, SourceTime } from '../../producers/migrate/options.ts'
import type { OwnerCounts } from '../../producers/migrate/owners.ts'
import { migrate, type Summary } from '../../producers/migrate/run.ts'
import { FileError } from '../../producers/rows/file-error.ts'
import { FILE_OUTCOMES, type FileCounts, type FileReasons, sumOfFile } from '../../producers/rows/file-outcome.ts'
import { type ColumnMap, parseMap } from '../../producers/rows/layout.ts'
import { shortfallOf } from '../../producers/rows/only/list.ts'
import { readOnly } from '../../producers/rows/only/read.ts'
import { type Profile, withAccount } from '../../producers/rows/profile/profile.ts'
import { readIso } from '../../producers/rows/time-form.ts'
import { systemClock } from '../../src/clock.ts'
import { editedText } from '../../src/edited-text.ts'
import type { Counts } from '../../src/job/outcome.ts'
import { lowerPriority } from '../../src/low-priority.ts'
import type { JsonOption } from '../command.ts'
import { EXIT, Stop } from '../exit.ts'
import { decryption } from '../open/encrypted-file.ts'
import { openSession, type Session } from '../open/open.ts'
import { type GiveUpOption, openProducer, waitingOf } from '../process/producer.ts'
import { stopper } from '../process/stopper.ts'
import { facts, print, say, type Terminal, userName } from '../terminal.ts'
import { profileOf } from './profile.ts'

export interface MigrateCommandOptions extends JsonOption, GiveUpOption {
  client?: string
  scope?: string
  format?: 'csv' | 'ndjson'
  from?: string
  decryptKey?: string
  verifyKey?: string
  map?: string
  ignoreUnknown?: boolean
  echo?: string[]
  results?: string
  manifest?: string
  rejects?: string
  return?: string
  dryRun?: boolean
  expect?: string
  only?: string
  allowMissing?: boolean
  onConflict: MigrateOptions['onConflict']
  onExpired: MigrateOptions['onExpired']
  sourceTime?: string
  onOrphan?: MigrateOptions['onOrphan']
  relink?: boolean
  providerAccount?: string
  chunk?: number
  inFlight: number
  batchId?: string
  migration?: string
  recordKind: MigrateOptions['recordKind']
  schemeTokens?: boolean
  again?: boolean
  limit?: number
  maxRejected?: MigrateOptions['rejectedMax']
}

export async function run(terminal: Terminal, file: string, options: MigrateCommandOptions): Promise<void> {
  const session = openSession(terminal)
  lowerPriority(session.config.lockMs)
  const stop = stopper(session)
  try {
    const summary = await migrateFile(session, file, options, stop.signal)
    report(session, summary, options)
    const missing = shortfallOf(summary.listing)
    if (missing !== undefined) say(terminal, `tokenmill: ${missing}`)
    const isShort = missing !== undefined && options.allowMissing !== true
    const status = statusOf(summary) || (isShort ? EXIT.incomplete : EXIT.ok)
    if (status !== EXIT.ok) process.exitCode = status
  } finally {
    stop.leave()
    await session.lifetime.close()
  }
}

/** Runs a migration; also used by the demo. */
export async function migrateFile(
  session: Session,
  file: string,
  options: MigrateCommandOptions,
  signal: AbortSignal,
): Promise<Summary> {
  const { optionsOf, deps } = await openMigration(session, options, signal)
  return migrate(optionsOf(file), deps)
}

/** Opens what the migration of one file or several needs. */
export async function openMigration(
  session: Session,
  options: MigrateCommandOptions,
  signal: AbortSignal,
): Promise<{ optionsOf: (file: string) => MigrateOptions; deps: FileRunDeps }> {
  const { terminal, log } = session
  const map = options.map === undefined ? undefined : await readMap(options.map)
  const profile = options.from === undefined ? withoutProfile(options) : await readProfile(options.from, options)
  const producing = await openProducer(session, options.client, ['bulk'])
  const only = options.only === undefined ? undefined : await readOnly(options.only)
  const { tokenScope } = producing.credentials
  const scope = options.scope ?? (options.recordKind === 'token-create' ? tokenScope : undefined)
  return {
    optionsOf: file => ({
      file,
      format: options.format,
      scope,
      ...decryption(terminal, options),
      map,
      profile,
      only,
      ignoreUnknown: options.ignoreUnknown ?? false,
      echo: options.echo ?? [],
      results: options.results,
      manifest: options.manifest,
      rejects: options.rejects,
      return: options.return,
      dryRun: options.dryRun ?? false,
      expect: options.expect,
      onConflict: options.onConflict,
      onExpired: options.onExpired,
      sourceTime: options.sourceTime === undefined ? undefined : sourceTimeOf(options.sourceTime),
      onOrphan: options.onOrphan,
      relink: options.relink ?? false,
      migration: options.migration,
      chunk: options.chunk,
      inFlight: options.inFlight,
      batchId: options.batchId,
      recordKind: options.recordKind,
      schemeTokens: options.schemeTokens ?? false,
      again: options.again ?? false,
      limit: options.limit,
      rejectedMax: options.maxRejected,
      startedBy: { command: terminal.words, osUser: userName() },
    }),
    deps: {
      ...producing,
      log,
      clock: systemClock,
      stream: terminal.stderr as NodeJS.WriteStream,
      stop: signal,
      ...waitingOf(session, options),
    },
  }
}

/**
 * Reads a profile. It replaces the options `--map`, `--format` and `--ignore-unknown`, so those are refused beside it.
 */
async function readProfile(from: string, options: MigrateCommandOptions): Promise<Profile> {
  const beside = (['map', 'format', 'ignoreUnknown'] as const).find(name => options[name] !== undefined)
  if (beside !== undefined) {
    const wrong = `--from and --${beside === 'ignoreUnknown' ? 'ignore-unknown' : beside} say both how the file is read.`
    throw new FileError('usage', wrong, 'Leave one out; `tokenmill profile show NAME` prints a profile to change.')
  }
  if (options.recordKind !== 'token-create')
    throw new FileError('usage', '--from reads cards.', 'Leave --record-kind out, or --from.')
  const profile = await profileOf(from)
  return options.providerAccount === undefined ? profile : withAccount(profile, options.providerAccount)
}

/**
 * The value of `--source-time`: a day means its beginning in UTC, and a text that is neither a day nor a time is the
 * name of a column.
 */
function sourceTimeOf(text: string): SourceTime {
  const ms = readIso(text)
  return ms === undefined ? { column: text } : { at: new Date(ms).toISOString() }
}

function withoutProfile({ providerAccount }: MigrateCommandOptions): undefined {
  if (providerAccount !== undefined)
    throw new FileError('usage', '--provider-account needs a profile.', 'Name one with --from, or leave it out.')
}

export async function readMap(path: string): Promise<ColumnMap> {
  const bytes = await readFile(path).catch(() => {
    throw new FileError('usage', `${path} cannot be read.`, 'Give --map a JSON file.')
  })
  const text = editedText(bytes, (wrong, next) => new FileError('usage', `${path} ${wrong}.`, next))
  return parseMap(path, text)
}

/** The exit status. A run that stopped at its `--limit` has done what it was asked to do. */
export function statusOf({
  complete,
  stopped,
  counts,
}: Pick<Summary, 'complete'> & { counts: Counts; stopped?: Summary['stopped'] }): number {
  if (!complete && stopped !== 'limit') return EXIT.failure
  return counts.REJECTED + counts.FAILED + counts.CANCELLED > 0 ? EXIT.incomplete : EXIT.ok
}

export function report(
  { terminal }: Pick<Session, 'terminal'>,
  summary: Summary,
  options: JsonOption & Pick<MigrateCommandOptions, 'expect' | 'again'>,
): void {
  const { batchId, variant, rows, counts, reasons, repairs, owners, complete, stopped, ms, differences } = summary
  const { results, rejects, return: back, manifest } = summary
  const outcomes = Object.fromEntries(FILE_OUTCOMES.map(outcome => [outcome.toLowerCase(), counts[outcome]]))
  const isExpected = complete && options.expect !== undefined
  const isAsExpected = isExpected && differences.length === 0
  const value = {
    batch_id: batchId,
    variant,
    complete,
    rows,
    ...outcomes,
    reasons,
    repairs,
    references: owners?.references,
    on_file: owners?.on_file,
    listing: summary.listing,
    stopped,
    ms,
    results,
    rejects,
    return: back,
    manifest: complete ? manifest : undefined,
    as_expected: isExpected ? isAsExpected : undefined,
    differences,
  }
  const shown = Object.entries(outcomes).filter(([, n]) => n > 0)
  const text = facts({
    batch: batchId,
    rows: `${rows} in ${(ms / 1000).toFixed(1)} s`,
    ...Object.fromEntries(shown.map(([outcome, n]) => [outcome, String(n)])),
    ...reasonFacts(reasons),
    ...Object.fromEntries(Object.entries(repairs).map(([name, n]) => [`  repaired, ${name}`, String(n)])),
    ...(owners && ownerFacts(owners)),
    results,
    rejects,
    return: back,
    manifest: complete ? manifest : undefined,
    counts: isAsExpected ? `as expected by ${options.expect}` : undefined,
  })
  print(terminal, options, value, text)
  for (const line of differenceLines(differences)) say(terminal, `tokenmill: ${line}`)
  if (stopped === 'limit')
    say(terminal, `tokenmill: stopped at --limit; ${howToContinue(batchId, options).withoutLimit} to go on`)
  const stop = stopOf(summary, options)
  if (stop) throw stop
}

export function differenceLines(differences: Summary['differences']): string[] {
  return differences.map(({ outcome, expected, found }) => `${outcome}: ${expected} expected, ${found} found`)
}

/** The end of a run that stopped early; undefined if `--limit` asked for that, or the run is complete. */
export function stopOf(
  { batchId, counts, results, complete, stopped, broken }: Omit<Summary, 'ms' | 'variant'>,
  options: Pick<MigrateCommandOptions, 'again'>,
): Stop | undefined {
  if (complete || stopped === 'limit') return undefined
  const { goOn } = howToContinue(batchId, options)
  if (stopped === 'rejected')
    return new Stop(
      `stopped: more rows are rejected than --max-rejected allows; ${goOn} with a higher bound, or without one, to continue`,
    )
  if (broken) return new Stop(`${broken.message} ${whatIsKept(counts, results)}`, broken.status)
  return new Stop(`stopped before the end; ${goOn} to continue`)
}

/** The rows before the place at which the file can't be read on. */
function whatIsKept(counts: FileCounts, results: string): string {
  return `The ${sumOfFile(counts)} rows that were answered before stand, and are in ${results}: once the rest is mended, give the same command the whole input again; it goes on behind them`
}

function howToContinue(batchId: string, { again }: Pick<MigrateCommandOptions, 'again'>) {
  if (!again) return { goOn: 'run the same command again', withoutLimit: 'run the same command without it' }
  // Running with `--again` once more would make another batch.
  const named = `run it with --batch-id ${batchId} in place of --again`
  return { goOn: named, withoutLimit: `${named} and without --limit` }
}

const TRAITS: Record<string, string> = {
  nti: 'with network ids',
  tlid: 'with link ids',
  tlid_unusual: 'of unusual form',
}

/** `owners  added 9, moved 1` */
function ownerFacts({ references, on_file }: OwnerCounts): Record<string, string> {
  const outcomes = Object.entries(references).map(([outcome, n]) => `${outcome.toLowerCase()} ${n}`)
  const traits = Object.entries(TRAITS).flatMap(([name, text]) => {
    const n = on_file[name]
    return n ? [[`  ${text}`, String(n)]] : []
  })
  return { owners: outcomes.length === 0 ? 'none' : outcomes.join(', '), ...Object.fromEntries(traits) }
}

/** The reasons of each outcome, such as `rejected, pan_luhn 12`, most frequent first. */
export function reasonFacts(reasons: FileReasons): Record<string, string> {
  const all = Object.entries(reasons).flatMap(([outcome, counts]) =>
    Object.entries(counts).map(([reason, n]) => ({ name: `  ${outcome.toLowerCase()}, ${reason}`, n })),
  )
  return Object.fromEntries(all.sort((a, b) => b.n - a.n).map(({ name, n }) => [name, String(n)]))
}
