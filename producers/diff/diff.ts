// `tokenmill migrate diff`: says what a new file, or the parts of one export, would change, and changes nothing. Workers predict
// each row from the store, and rows that change nothing are left out. For a complete export it also lists the owners whom no
// part names, for their release.
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
import { type RowOptions, readRows } from '../rows/file-rows.ts'
import { formatOf } from '../rows/input-format.ts'
import { checkColumns } from '../rows/layout.ts'
import { type Listing, listingOf } from '../rows/only/list.ts'
import type { FileRow } from '../rows/outcome/result-row.ts'
import { keyedDigest } from '../rows/partitions.ts'
import type { Profile } from '../rows/profile/profile.ts'
import type { Row } from '../rows/rows.ts'
import { openSource, type SourceOptions } from '../rows/source.ts'
import { type ValidatedFile, validateFile } from '../rows/validate-file.ts'
import { CHANGES, type Change, changesNothing, openChanges, type RowChanges } from './changes.ts'
import { openGroups } from './groups.ts'
import { readOwners } from './owners-of-file.ts'
import { planLine, releaseLine, removedLine } from './plan.ts'
import { predict } from './predict.ts'
import { findRemoved, type RemovedOwners } from './removed.ts'
import { type LineOf, writeWholeFiles } from './whole-files.ts'

export interface DiffOptions {
  /** The options of the later migration of each part. */
  migrate: readonly MigrateOptions[]
  /** Set if the parts hold every card of their accounts (`--complete`); without it no owner counts as gone. */
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
  /** The parts of which rows are to be migrated, with the paths of their plans. */
  plans: readonly { file: string; plan: string }[]
  /** The path of the releases, beside the first part; undefined if there is nothing to release. */
  releases: string | undefined
  /** How much of the list of `--only` the parts have. */
  listing: Listing | undefined
  ms: number
}

export async function diff({ migrate, complete }: DiffOptions, deps: FileRunDeps): Promise<DiffSummary> {
  const began = deps.clock()
  const readings = migrate.map(readingOf)
  const { files, removed } = await readFirst(readings, complete?.db)
  for (const [part, { options }] of readings.entries()) refuseOtherFile(options, files[part]?.digests.sha256)
  // Files of an earlier diff are removed first: if this diff stops, they could be of another content of the file.
  const paths = pathsOf(readings)
  for (const path of paths.values()) await rm(path, { force: true })
  const changes = openChanges()
  const groups = openGroups()
  const [only] = migrate.map(options => options.only)
  const summary = {
    rows: files.reduce((sum, { rows }) => sum + rows, 0),
    changes: {},
    leftOut: 0,
    plans: [],
    releases: undefined,
    removed: removed && { count: removed.count, stored: removed.stored },
    listing: undefined,
  }
  try {
    if (removed && complete && isOver(removed, complete.removedMax))
      return { ...summary, stopped: 'removed', ms: deps.clock() - began }
    for (const [part, reading] of readings.entries()) {
      const see = (ends: readonly FileRow[], given: readonly Row[]) => {
        for (const [index, row] of given.entries()) {
          const end = ends[index]
          if (!end) throw new Error('broken law: each row has an end')
          groups.add(changes.count(), end.outcome === 'SKIPPED' ? [] : subjectsOf(row))
          changes.add(end, !changesNothing(end) || isAlwaysPlanned(row, reading.options))
        }
      }
      const isComplete = await predict({ ...reading, file: fileOf(files, part) }, deps, see)
      if (!isComplete) return { ...summary, stopped: 'interrupted', ms: deps.clock() - began }
    }
    groups.spread(changes)
    const counts = await writeWholeFiles(paths, linesOf(readings, { files, changes, removed }))
    const written = (name: string) => ((counts.get(name) ?? 0) === 0 ? undefined : paths.get(name))
    const plans = readings.flatMap(({ options: { file } }, part) => {
      const plan = written(planName(part))
      return plan === undefined ? [] : { file, plan }
    })
    const found = {
      ...summary,
      ...countsOf(changes),
      plans,
      releases: written(RELEASES),
      listing: only && listingOf(only),
    }
    return { ...found, stopped: undefined, ms: deps.clock() - began }
  } finally {
    groups.close()
  }
}

function fileOf(files: readonly ValidatedFile[], part: number): ValidatedFile {
  const file = files[part]
  if (!file) throw new Error('broken law: each part was read before')
  return file
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

/** The first reading, and of a complete export the owners who are gone: before a row is sent. */
async function readFirst(
  readings: readonly Reading[],
  db: Db | undefined,
): Promise<{ files: ValidatedFile[]; removed: RemovedOwners | undefined }> {
  if (!db) {
    const files: ValidatedFile[] = []
    for (const { source, rowOptions } of readings) files.push(await validateFile(source, rowOptions))
    return { files, removed: undefined }
  }
  const digestOf = keyedDigest()
  const parts = readings.map(({ options: { profile, scope }, source, rowOptions }) => {
    if (!hasOwners(profile) || scope === undefined)
      throw new FileError(
        'usage',
        '--complete compares owners, and nothing says whose cards the rows are.',
        'Name a profile with --from that has on_file, or leave --complete out.',
      )
    return { source, rowOptions: { ...rowOptions, profile }, tokenScope: scope }
  })
  const { files, named, accounts } = await readOwners({ parts, digestOf })
  try {
    const [{ tokenScope } = { tokenScope: '' }] = parts
    const [{ only } = { only: undefined }] = readings.map(({ options }) => options)
    return { files, removed: await findRemoved(db, { tokenScope, accounts, named, digestOf, only }) }
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
  files: readonly ValidatedFile[]
  changes: RowChanges
  removed: RemovedOwners | undefined
}

const RELEASES = 'releases'
const planName = (part: number) => `plan-${part}`

/** The files that a diff writes, by name: a plan beside each part, and the releases beside the first. */
function pathsOf(readings: readonly Reading[]): ReadonlyMap<string, string> {
  const files = readings.map(({ options }) => options.file)
  return new Map([
    ...files.map((file, part) => [planName(part), `${file}.plan.ndjson`] as const),
    [RELEASES, `${files[0]}.releases.ndjson`],
  ])
}

async function* linesOf(readings: readonly Reading[], { files, changes, removed }: Found): AsyncGenerator<LineOf> {
  let next = 0
  for (const [part, { options, source, rowOptions }] of readings.entries()) {
    const { digests } = fileOf(files, part)
    const { bytes } = await openSource(source, digests)
    for await (const { rows } of cutRows(readRows(bytes, rowOptions), options.chunk ?? CHUNK.recordsDefault)) {
      for (const row of rows) {
        const at = next++
        if (!changes.isPlanned(at)) continue
        const planned = { row, change: changes.changeOf(at), isNamed: changes.isNamed(at) }
        yield { to: planName(part), text: planLine(planned, digests.sha256, options.profile) }
      }
    }
  }
  const [{ profile, onOrphan } = { profile: undefined, onOrphan: undefined }] = readings.map(({ options }) => options)
  if (!removed) return
  for await (const owner of removed.all()) {
    yield { to: planName(0), text: removedLine(owner, profile) }
    yield { to: RELEASES, text: releaseLine(owner, onOrphan) }
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
