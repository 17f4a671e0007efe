// Reads the file of a provider by a profile: bytes become rows of cells, in the columns that all files share.
import { COLUMN_NAMES } from '../columns.ts'
import { FileError } from '../file-error.ts'
import type { KeptField } from '../kept.ts'
import { absent, checkColumns, type Layout, shown } from '../layout.ts'
import { isSecurityCode } from '../security-code.ts'
import { readIso, timeReader } from '../time-form.ts'
import { readDelimited } from './delimited.ts'
import { toUtf8 } from './encoding.ts'
import { readFixed } from './fixed.ts'
import { readNested, readObjects } from './json/nested.ts'
import { type ProfiledRow, rowMaker } from './make-row.ts'
import { fieldsOf, isCardData } from './profile-rules.ts'
import type { Profile } from './profile-schema.ts'
import type { FieldUse, RawRecord } from './records.ts'

export { REPAIRS, type Repair } from './cells.ts'
export type { ProfiledRow } from './make-row.ts'

export interface ProfiledOptions {
  recordKind: 'token-create'
  /** The fields that the results repeat, in that order. */
  echo?: readonly string[] | undefined
  /** Fields whose texts each row keeps. */
  keep?: readonly KeptField[] | undefined
  /** The field that says when each row's data was given. */
  timeColumn?: string | undefined
  /** If set, every row names its owner, even if it is rejected or skipped. */
  owners?: boolean | undefined
}

const ROWS_MAX = 500

/**
 * A layout with a position for each column of COLUMNS, followed by the echoed fields and the source time. Throws a
 * FileError for a field that must not be read or echoed.
 */
export function profiledLayout(profile: Profile, { recordKind, echo = [], timeColumn }: ProfiledOptions): Layout {
  checkColumns({ recordKind, echo })
  const card = new Set(fieldsOf(profile).flatMap(({ path, field }) => (isCardData(path) ? [field] : [])))
  const isUnfit = (name: string) => card.has(name) || isSecurityCode(name) || profile.drop?.includes(name) === true
  const echoed = echo.find(isUnfit)
  if (echoed !== undefined)
    throw new FileError('usage', `--echo ${shown(echoed)} would put card data into the results.`, 'Leave it out.')
  if (timeColumn !== undefined && isUnfit(timeColumn))
    throw new FileError('usage', `--source-time ${shown(timeColumn)} is no field of times.`, 'Name another one.')
  const at = absent()
  for (const [index, name] of COLUMN_NAMES.entries()) at[name] = index
  const read = profile.source_time ? timeReader(profile.source_time) : readIso
  const timed = timeColumn === undefined ? undefined : { at: COLUMN_NAMES.length + echo.length, read }
  return {
    recordKind,
    at,
    echo: echo.map((_, index) => COLUMN_NAMES.length + index),
    sourceTime: timed,
    isProfiled: true,
  }
}

/**
 * Yields at most 500 rows at a time; memory doesn't grow with the file. Throws a FileError if the whole file is
 * unusable, which may show only at its end.
 */
export async function* readProfiled(
  bytes: AsyncIterable<Buffer>,
  profile: Profile,
  options: ProfiledOptions,
): AsyncGenerator<ProfiledRow[]> {
  profiledLayout(profile, options)
  const { uses, make } = rowMaker(profile, { ...options, echo: options.echo ?? [], keep: options.keep })
  let rows = 0
  for await (const records of readRecords(toUtf8(bytes, profile.format.encoding), profile, uses)) {
    rows += records.length
    for (let at = 0; at < records.length; at += ROWS_MAX) yield records.slice(at, at + ROWS_MAX).map(make)
  }
  if (rows === 0) throw empty()
}

function empty(): FileError {
  return new FileError('input', 'The file holds no rows.', 'Check the export that made it.')
}

/** What is known of a file's size without making its rows. */
export interface ProfiledSize {
  rows: number
  /** How many of the rows are skipped. */
  skipped: number
  /**
   * The most UTF-16 units of a text that a row's record takes from the file; texts that the profile holds come on top.
   */
  unitsMax: number
}

/** Reads a whole file without making rows. Throws what `readProfiled` would throw. */
export async function measureProfiled(
  bytes: AsyncIterable<Buffer>,
  profile: Profile,
  options: ProfiledOptions,
): Promise<ProfiledSize> {
  profiledLayout(profile, options)
  const { uses, measure } = rowMaker(profile, { ...options, echo: options.echo ?? [], keep: options.keep })
  const size = { rows: 0, skipped: 0, unitsMax: 0 }
  for await (const records of readRecords(toUtf8(bytes, profile.format.encoding), profile, uses)) {
    size.rows += records.length
    for (const record of records) {
      const { skipped, units } = measure(record)
      if (skipped) size.skipped += 1
      if (units > size.unitsMax) size.unitsMax = units
    }
  }
  if (size.rows === 0) throw empty()
  return size
}

function readRecords(
  bytes: AsyncIterable<Buffer>,
  { format, trim = false, drop = [] }: Profile,
  uses: readonly FieldUse[],
): AsyncIterable<RawRecord[]> {
  switch (format.type) {
    case 'delimited':
      return readDelimited(bytes, format, { uses, trim, drop })
    case 'fixed':
      return readFixed(bytes, format, { uses, drop })
    case 'ndjson':
      return readObjects(bytes, uses)
    case 'json':
      return readNested(bytes, format, uses)
  }
}
