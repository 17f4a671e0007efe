// Reads a file as records that are ready to be sent, in arrays: in the columns that all files share, or as a profile says
// that a provider wrote it.
import { UNPLAIN } from './column-record.ts'
import type { Layout } from './layout.ts'
import { keepOnly, type OnlyList } from './only/list.ts'
import type { Profile } from './profile/profile.ts'
import { measureProfiled, type ProfiledRow, profiledLayout, readProfiled } from './profile/read.ts'
import { buildRow, type Row, rejectRow, skipRow } from './record.ts'
import { type Counted, countPlainCells, noRows, type PlainOptions, readPlainRows } from './rows.ts'

export interface RowOptions extends PlainOptions {
  /** How the provider wrote the file; then `format` and column names aren't used. */
  profile?: Profile | undefined
  /** The list of rows that are to be sent (`--only`); the others are skipped. */
  only?: OnlyList | undefined
  /** If set, every row of a file with owners names its owner, even if it is rejected or skipped. */
  owners?: boolean | undefined
}

/** Yields the rows of up to 64 KiB of text at a time. Throws a FileError if the whole file is unusable. */
export async function* readRows(bytes: AsyncIterable<Buffer>, options: RowOptions): AsyncGenerator<Row[]> {
  const { only, profile } = options
  const parts = profile ? profiledRows(bytes, profile, options) : readPlainRows(bytes, options)
  for await (const part of parts) yield only ? part.map(row => keepOnly(row, only)) : part
}

/** Counts the rows that readRows would yield and refuses what it would refuse, without building a record. */
export async function countRows(bytes: AsyncIterable<Buffer>, options: RowOptions): Promise<Counted> {
  let rows = 0
  let valuesMax = VALUES_BYTES_USUAL
  const count = (cells: readonly string[]) => {
    rows += 1
    let units = 0
    for (const cell of cells) units += cell.length
    if (units * UNIT_BYTES_MAX > valuesMax) valuesMax = Math.max(valuesMax, bytesInJson(cells))
  }
  if (options.profile) {
    const { unitsMax, ...counted } = await measureProfiled(bytes, options.profile, asked(options))
    return {
      ...counted,
      recordBytesMax: options.only ? UNKNOWN : unitsMax * UNIT_BYTES_MAX + ownBytesOf(options.profile),
    }
  }
  await countPlainCells(bytes, options, count)
  if (rows === 0) throw noRows()
  // With `--only` the number of listed rows is known only when they are built.
  return { rows, skipped: 0, recordBytesMax: options.only ? UNKNOWN : valuesMax + FRAME_BYTES_MAX }
}

const UNKNOWN = Number.POSITIVE_INFINITY

/** Values of so many bytes make no chunk too long, so the bytes of shorter ones aren't counted exactly. */
const VALUES_BYTES_USUAL = 1_536

/** The most bytes that values take in JSON; exact for texts that need no escapes, such as a JWE. */
function bytesInJson(values: readonly string[]): number {
  let bytes = 0
  for (const text of values) bytes += UNPLAIN.test(text) ? text.length * UNIT_BYTES_MAX : Buffer.byteLength(text)
  return bytes
}

/** The most bytes that a UTF-16 unit takes in JSON: `\u0001`. */
const UNIT_BYTES_MAX = 6
/** The most bytes of a record besides its values: its line number and the names of all members, or of `on_file`. */
const FRAME_BYTES_MAX = 1_000

/** The most bytes of a record that don't come from its row: the names of its members, and texts of the profile. */
function ownBytesOf({ columns, on_file: onFile }: Profile): number {
  return 2 * FRAME_BYTES_MAX + Buffer.byteLength(JSON.stringify([columns, onFile]))
}

async function* profiledRows(
  bytes: AsyncIterable<Buffer>,
  profile: Profile,
  options: RowOptions,
): AsyncGenerator<Row[]> {
  const layout = { ...profiledLayout(profile, asked(options)), inColumns: options.inColumns }
  const isNested = profile.format.type === 'json'
  let number = 0
  for await (const rows of readProfiled(bytes, profile, asked(options))) {
    yield rows.map(row => rowOf(row, layout, isNested ? ++number : row.line))
  }
}

function rowOf(given: ProfiledRow, layout: Layout, line: number): Row {
  const { element, item, cells, rejected, reference, skipped, repairs } = given
  const row = skipped
    ? skipRow(line, skipped, reference)
    : rejected
      ? rejectRow(line, rejected, reference, undefined, '', given.field)
      : buildRow(line, cells, layout, given.onFile?.json)
  row.repairs = repairs
  if (row.rejected === undefined) {
    row.onFile = given.onFile?.traits
    row.cardLike = given.onFile?.cardLike
  }
  row.number = given.number
  if (given.kept) row.kept = given.kept
  if (given.owner) row.owner = given.owner
  if (element === undefined) return row
  row.fileLine = given.line
  row.item = item === undefined ? String(element) : `${element}.${item}`
  return row
}

function asked({ echo = [], keep, timeColumn, only, owners = only?.namesOwners }: RowOptions) {
  return { recordKind: 'token-create' as const, echo, keep, timeColumn, owners }
}
