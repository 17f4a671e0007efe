// `tokenmill migrate diff`: says what a new file would change, and changes nothing. Workers predict each row from the
// store, and rows that change nothing are left out. For a complete file it also lists the owners whom the file doesn't
// name, for their release.
import { rm } from 'node:fs/promises'
import { CHUNK } from '../../src/job/choices.ts'
import type { Db } from '../../src/store/pool.ts'
import { ownerKey } from '../../src/token/on-file.ts'
import { digitsOf } from '../../src/token/pan.ts'
import type { FileRunDeps } from '../file-run.ts'
import { refuseImpossible, refuseOtherFile } from '../migrate/check-options.ts'
import type { MigrateOptions, RejectedMax } from '../migrate/options.ts'
import { cutRows } from '../rows/chunks.ts'
import { FileError } from '../rows/file-error.ts'
import { formatOf } from '../rows/input-format.ts'
import { checkColumns } from '../rows/layout.ts'
import type { FileRow } from '../rows/outcome/result-row.ts'
import type { Profile } from '../rows/profile/profile.ts'
import { type Row, type RowOptions, readRows } from '../rows/rows.ts'
import { openSource, type SourceOptions } from '../rows/source.ts'
import { keyedDigest } from '../rows/spill/partitions.ts'
import { type ValidatedFile, validateFile } from '../rows/validate-file.ts'
import { CHANGES, type Change, changesNothing, openChanges, type RowChanges } from './changes.ts'
import { openGroups } from './groups.ts'
import { readOwners } from './owners-of-file.ts'
import { planLine, releaseLine, removedLine } from './plan.ts'
import { predict } from './predict.ts'
import { findRemoved, type RemovedOwners } from './removed.ts'
import { type LineOf, writeWholeFiles } from './whole-files.ts'

export interface DiffOptions {
  /** The options of the later migration. */
  migrate: MigrateOptions
  /** Set if the file holds every card of its accounts (`--complete`); without it no owner counts as gone. */
  complete: { db: Db; removedMax: RejectedMax } | undefined
}

export interface DiffSummary {
  rows: number
  /** Planned rows by change. */
  changes: Partial<Record<Change, number>>
  /** Rows that change nothing and aren't in the plan. */
  leftOut: number
  /** How many owners are gone, of how many that are stored; undefined for a file that isn't complete. */
  removed: { count: number; stored: number } | undefined
  /** Why nothing was written; undefined if the files are there. */
  stopped: 'removed' | 'interrupted' | undefined
  /** The paths of the files; undefined if there is nothing to migrate (`plan`) or to release (`releases`). */
  plan: string | undefined
  releases: string | undefined
  ms: number
}

export async function diff({ migrate, complete }: DiffOptions, deps: FileRunDeps): Promise<DiffSummary> {
  const began = deps.clock()
  const reading = readingOf(migrate)
  const { file, removed } = await readFirst(reading, complete?.db)
  refuseOtherFile(reading.options, file.digests.sha256)
  // Files of an earlier diff are removed first: if this diff stops, they could be of another content of the file.
  for (const path of Object.values(pathsOf(reading))) await rm(path, { force: true })
  const changes = openChanges()
  const groups = openGroups()
  const summary = {
    ...{ rows: file.rows, changes: {}, leftOut: 0, plan: undefined, releases: undefined },
    removed: removed && { count: removed.count, stored: removed.stored },
  }
  try {
    if (removed && complete && isOver(removed, complete.removedMax))
      return { ...summary, stopped: 'removed', ms: deps.clock() - began }
    const see = (ends: readonly FileRow[], given: readonly Row[]) => {
      for (const [index, row] of given.entries()) {
        const end = ends[index]
        if (!end) throw new Error('broken law: each row has an end')
        groups.add(changes.count(), end.outcome === 'SKIPPED' ? [] : subjectsOf(row))
        changes.add(end, !changesNothing(end) || isAlwaysPlanned(row, reading.options))
      }
    }
    const isComplete = await predict({ ...reading, file }, deps, see)
    if (!isComplete) return { ...summary, stopped: 'interrupted', ms: deps.clock() - began }
    groups.spread(changes)
    const paths = await write(reading, { file, changes, removed })
    return { ...summary, ...countsOf(changes), ...paths, stopped: undefined, ms: deps.clock() - began }
  } finally {
    groups.close()
  }
}

interface Reading {
  /** The options of the dry run. */
  options: MigrateOptions
  source: SourceOptions
  rowOptions: RowOptions
}

function readingOf(given: MigrateOptions): Reading {
  const options = { ...given, dryRun: true }
  const { file: path, profile, recordKind, decryptKeyFile, passphrase, verifyKeyFile } = options
  if (path === '-')
    throw new FileError('usage', 'Standard input can be read only once.', 'Give migrate diff the name of a file.')
  if (recordKind !== 'token-create')
    throw new FileError('usage', 'migrate diff compares files of cards.', 'Leave --record-kind out.')
  if (!profile) checkColumns(options)
  refuseImpossible(options)
  // With a profile, `format` isn't used.
  const format = profile ? 'csv' : formatOf(path, options.format)
  const source = { path, decryptKeyFile, passphrase, verifyKeyFile }
  return { options, source, rowOptions: { ...options, format, owners: true } }
}

/** The first reading, and of a complete file the owners who are gone: before a row is sent. */
async function readFirst(
  { options, source, rowOptions }: Reading,
  db: Db | undefined,
): Promise<{ file: ValidatedFile; removed: RemovedOwners | undefined }> {
  if (!db) return { file: await validateFile(source, rowOptions), removed: undefined }
  const { profile, scope: tokenScope, only } = options
  if (!hasOwners(profile) || tokenScope === undefined)
    throw new FileError(
      'usage',
      '--complete compares owners, and nothing says whose cards the rows are.',
      'Name a profile with --from that has on_file, or leave --complete out.',
    )
  const digestOf = keyedDigest()
  const { file, named, accounts } = await readOwners({ source, rowOptions: { ...rowOptions, profile }, digestOf })
  try {
    return { file, removed: await findRemoved(db, { tokenScope, accounts, named, digestOf, only }) }
  } finally {
    named.close()
  }
}

function hasOwners(profile: Profile | undefined): profile is Profile {
  return profile?.on_file !== undefined
}

function isOver({ count, stored }: RemovedOwners, most: RejectedMax): boolean {
  return 'rows' in most ? count > most.rows : count > most.share * stored
}

/** Rows about the same card or owner belong together. */
function subjectsOf({ number, owner }: Row): string[] {
  const digits = digitsOf(number)
  return [
    ...(digits === '' ? [] : [`card ${digits}`]),
    ...(typeof owner === 'object' ? [`owner ${ownerKey({ ...owner, tokenScope: '' })}`] : []),
  ]
}

/**
 * An encrypted card can't be compared with others of the file. Where tokens without owners end, or follow their owner to
 * another number, a card without an owner may need a new token although it has one now.
 */
function isAlwaysPlanned(row: Row, { onOrphan = 'keep', relink }: MigrateOptions): boolean {
  if (row.skipped !== undefined) return false
  const isEncrypted = row.rejected === undefined && row.number === ''
  return isEncrypted || ((onOrphan !== 'keep' || relink === true) && typeof row.owner !== 'object')
}

interface Found {
  file: ValidatedFile
  changes: RowChanges
  removed: RemovedOwners | undefined
}

function pathsOf({ options: { file } }: Reading) {
  return { plan: `${file}.plan.ndjson`, releases: `${file}.releases.ndjson` }
}

async function write(reading: Reading, found: Found): Promise<Pick<DiffSummary, 'plan' | 'releases'>> {
  const paths = pathsOf(reading)
  const counts = await writeWholeFiles(paths, linesOf(reading, found))
  return {
    plan: counts.get('plan') === 0 ? undefined : paths.plan,
    releases: counts.get('releases') === 0 ? undefined : paths.releases,
  }
}

async function* linesOf(
  { options, source, rowOptions }: Reading,
  { file, changes, removed }: Found,
): AsyncGenerator<LineOf<'plan' | 'releases'>> {
  const { bytes } = await openSource(source, file.digests)
  let next = 0
  for await (const { rows } of cutRows(readRows(bytes, rowOptions), options.chunk ?? CHUNK.recordsDefault)) {
    for (const row of rows) {
      const at = next++
      if (!changes.isPlanned(at)) continue
      const planned = { row, change: changes.changeOf(at), isNamed: changes.isNamed(at) }
      yield { to: 'plan', text: planLine(planned, file.digests.sha256, options.profile) }
    }
  }
  if (!removed) return
  for await (const owner of removed.all()) {
    yield { to: 'plan', text: removedLine(owner, options.profile) }
    yield { to: 'releases', text: releaseLine(owner, options.onOrphan) }
  }
}

function countsOf(changes: RowChanges): Pick<DiffSummary, 'changes' | 'leftOut'> {
  const counts: Partial<Record<Change, number>> = {}
  let leftOut = 0
  for (let row = 0; row < changes.count(); row++) {
    const change = changes.changeOf(row)
    if (changes.isPlanned(row)) counts[change] = (counts[change] ?? 0) + 1
    else if (change !== 'skipped') leftOut += 1
  }
  const sorted = CHANGES.flatMap(change => (counts[change] ? [[change, counts[change]]] : []))
  return { changes: Object.fromEntries(sorted), leftOut }
}
