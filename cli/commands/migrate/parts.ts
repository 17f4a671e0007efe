// `tokenmill migrate PART… --migration NAME`: runs the parts one after the other, and prints the sums of all parts.

import { pathsOf } from '../../../producers/migrate/batch-identity.ts'
import { compare, type Manifest, readManifest } from '../../../producers/migrate/manifest.ts'
import type { MigrateOptions } from '../../../producers/migrate/options.ts'
import { finishedPart, optionsOfPart, refuseForParts, refuseSameContent } from '../../../producers/migrate/parts.ts'
import { noteListed } from '../../../producers/migrate/reading.ts'
import { migrate, type Summary } from '../../../producers/migrate/run.ts'
import { FILE_OUTCOMES, type FileCounts, noFileCounts } from '../../../producers/rows/file-outcome.ts'
import { type Listing, listingOf, type OnlyList, shortfallOf } from '../../../producers/rows/only/list.ts'
import { lowerPriority } from '../../../src/low-priority.ts'
import { EXIT, Stop } from '../../exit.ts'
import { openSession } from '../../open/open.ts'
import { stopper } from '../../process/stopper.ts'
import { print, say, type Terminal, table } from '../../terminal.ts'
import { differenceLines, type MigrateCommandOptions, openMigration, statusOf, stopOf } from '../migrate.ts'

interface Part extends Omit<Summary, 'ms' | 'variant'> {
  file: string
  /** `finished_before`: by an earlier run; nothing of it was sent in this one. */
  state: 'complete' | 'stopped' | 'finished_before'
  /** The manifest with which its counts are compared. */
  expect: string | undefined
}

export async function run(terminal: Terminal, files: readonly string[], options: MigrateCommandOptions): Promise<void> {
  const session = openSession(terminal)
  lowerPriority(session.config.lockMs)
  const stop = stopper(session)
  const parts: Part[] = []
  let only: OnlyList | undefined
  try {
    refuseForParts(files, options)
    await refuseSameContent(files)
    const { optionsOf, deps } = await openMigration(session, options, stop.signal)
    for (const [index, file] of files.entries()) {
      const own = optionsOfPart(optionsOf(file))
      only = own.only
      const finished = await finishedPart(own)
      if (finished && own.only) await noteListed(own, deps.clock())
      say(terminal, `tokenmill: part ${index + 1} of ${files.length}: ${file}${finished ? ' was finished before' : ''}`)
      parts.push(finished ? await partOf(finished, own) : partDone(await migrate(own, deps), own))
      if (parts.at(-1)?.state === 'stopped') break
    }
  } finally {
    if (parts.length > 0) show(terminal, { parts, count: files.length, listing: only && listingOf(only) }, options)
    stop.leave()
    await session.lifetime.close()
  }
  conclude(terminal, parts, files)
  const missing = only && shortfallOf(listingOf(only))
  if (missing === undefined || parts.some(({ state }) => state === 'stopped')) return
  say(terminal, `tokenmill: ${missing}`)
  if (options.allowMissing !== true) process.exitCode = EXIT.incomplete
}

function partDone(summary: Summary, { file, expect }: MigrateOptions): Part {
  return { ...summary, file, expect, state: summary.complete ? 'complete' : 'stopped' }
}

async function partOf(manifest: Manifest, options: MigrateOptions): Promise<Part> {
  const { file, expect } = options
  const { batch_id: batchId, rows, counts, reasons = {}, repairs = {}, references, on_file } = manifest
  const expected = expect === undefined ? undefined : (await readManifest(expect)).manifest
  return {
    file,
    expect,
    batchId,
    state: 'finished_before',
    complete: true,
    rows,
    counts,
    reasons,
    repairs,
    owners: references && on_file && { references, on_file },
    ...pathsOf(options, 'run'),
    stopped: undefined,
    broken: undefined,
    differences: compare(expected, counts),
  }
}

function asJson({ file, state, stopped, rows, owners, differences, ...part }: Part): Record<string, unknown> {
  const isCompared = part.complete && part.expect !== undefined
  return {
    file,
    state,
    stopped,
    rows,
    batch_id: part.batchId,
    ...named(part.counts),
    reasons: part.reasons,
    repairs: part.repairs,
    references: owners?.references,
    on_file: owners?.on_file,
    results: part.results,
    rejects: part.rejects,
    return: part.return,
    manifest: part.complete ? part.manifest : undefined,
    as_expected: isCompared ? differences.length === 0 : undefined,
    differences,
  }
}

function named(counts: FileCounts): Record<string, number> {
  return Object.fromEntries(FILE_OUTCOMES.map(outcome => [outcome.toLowerCase(), counts[outcome]]))
}

function show(
  terminal: Terminal,
  { parts, count, listing }: { parts: readonly Part[]; count: number; listing: Listing | undefined },
  { migration, json }: Pick<MigrateCommandOptions, 'migration' | 'json'>,
): void {
  const sum = noFileCounts()
  for (const { counts } of parts) for (const outcome of FILE_OUTCOMES) sum[outcome] += counts[outcome]
  const rows = parts.reduce((all, part) => all + part.rows, 0)
  const isComplete = parts.length === count && parts.every(({ state }) => state !== 'stopped')
  const value = {
    migration,
    complete: isComplete,
    parts: parts.map(asJson),
    rows,
    listing: isComplete ? listing : undefined,
    ...named(sum),
  }
  const found = FILE_OUTCOMES.filter(outcome => sum[outcome] > 0)
  const cells = (of: Pick<Part, 'rows' | 'counts'>) => [String(of.rows), ...found.map(name => String(of.counts[name]))]
  const text = table(
    ['part', 'batch', 'state', 'rows', ...found.map(name => name.toLowerCase())],
    [
      ...parts.map(part => [part.file, part.batchId, part.state.replace('_', ' '), ...cells(part)]),
      ['all', '', isComplete ? 'complete' : 'not complete', ...cells({ rows, counts: sum })],
    ],
  )
  print(terminal, { json: json ?? false }, value, text)
  for (const { file, complete, expect, differences } of parts) {
    for (const line of differenceLines(differences)) say(terminal, `tokenmill: ${file}: ${line}`)
    if (complete && expect !== undefined && differences.length === 0)
      say(terminal, `tokenmill: ${file}: as expected by ${expect}`)
  }
}

/** Ends with the worst status of the parts. */
function conclude(terminal: Terminal, parts: readonly Part[], files: readonly string[]): void {
  const statuses = parts.map(({ state, stopped, counts }) =>
    statusOf({ complete: state !== 'stopped', stopped, counts }),
  )
  const last = parts.at(-1)
  if (last?.state === 'stopped') {
    const after = files.length - parts.length
    const more = after === 0 ? '' : `, and ${after} ${after === 1 ? 'part was' : 'parts were'} not begun`
    const stop = stopOf(last, { again: false })
    if (stop) throw new Stop(`${last.file}${more}: ${stop.message}`, stop.status)
    say(terminal, `tokenmill: stopped at --limit in ${last.file}${more}; run the same command without it to go on`)
  }
  if (statuses.includes(EXIT.incomplete)) process.exitCode = EXIT.incomplete
}
