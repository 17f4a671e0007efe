// `tokenmill inspect`: reads a file once, sends nothing, and says what is in it. While reading, it keeps only keyed
// digests, counts and the names of columns.
import { FileError } from '../rows/file-error.ts'
import { type RowOptions, readRows } from '../rows/file-rows.ts'
import type { Profile } from '../rows/profile/profile.ts'
import { type CardFindings, openCardInspection } from './cards.ts'
import { type ColumnGuess, guessColumn } from './column-guess.ts'
import { type Draft, draftProfile } from './draft.ts'
import { type FileForm, formOf, HEAD_BYTES } from './form.ts'

export interface Inspection {
  form: Pick<FileForm, 'type' | 'encoding' | 'delimiter'>
  /** False if the first row seems to hold data. */
  hasHeader: boolean | undefined
  /** From how many of the first rows the columns were guessed. */
  rowsJudged: number
  columns: ColumnGuess[]
  /** The profile with which the cards were read; undefined if none could be made. */
  profile: Profile | undefined
  /** In place of it: the draft with place-holders for what a person must name. */
  sketch?: Profile
  /** What a person must decide before the file can be migrated. */
  open: string[]
  cards: CardFindings | undefined
  warnings: string[]
}

export interface InspectOptions {
  /** How the provider wrote the file; if undefined, a profile is guessed. */
  profile?: Profile | undefined
  /** Cards that have expired at this time count as expired, ms since the epoch. */
  at: number
}

/** Reads `bytes` to their end. Throws a FileError if the file can't be read at all. */
export async function inspect(bytes: AsyncIterable<Buffer>, options: InspectOptions): Promise<Inspection> {
  const { head, isWhole, all } = await peek(bytes)
  if (head.length === 0) throw new FileError('input', 'The file is empty.', 'Check the export that made it.')
  const form = await formOf(head, isWhole)
  const columns = columnsOf(form)
  const draft: Draft = options.profile ? { profile: options.profile, open: [] } : draftOf(form, columns)
  const { profile } = draft
  const rowOptions: RowOptions = { format: 'csv', recordKind: 'token-create', profile }
  const cards = profile ? await inspectCards(all, rowOptions, options.at) : undefined
  if (!profile) await drain(all)
  const { type, encoding, delimiter, header } = form
  return {
    form: delimiter === undefined ? { type, encoding } : { type, encoding, delimiter },
    hasHeader: type === 'delimited' ? header !== undefined : undefined,
    rowsJudged: form.rows.length,
    columns,
    profile,
    ...(draft.sketch ? { sketch: draft.sketch } : {}),
    open: draft.open,
    cards,
    warnings: warningsOf(form, profile),
  }
}

function draftOf(form: FileForm, columns: readonly ColumnGuess[]): Draft {
  if (form.type === 'delimited') return draftProfile(form, columns)
  return { profile: undefined, open: ['JSON is read by a profile: name one with --from (`tokenmill profile list`).'] }
}

function columnsOf({ header, rows }: FileForm): ColumnGuess[] {
  const names = header ?? (rows[0] ?? []).map((_, index) => `#${index + 1}`)
  return names.map((name, index) =>
    guessColumn(
      name,
      rows.map(row => row[index] ?? ''),
    ),
  )
}

function warningsOf({ encoding }: FileForm, profile: Profile | undefined): string[] {
  const declared = profile?.format.encoding
  const isSingleByte = declared === 'windows-1252' || declared === 'iso-8859-1'
  return isSingleByte && encoding === 'utf-8'
    ? [`The profile says ${declared}, but the text is valid UTF-8: names with accents would be read wrongly.`]
    : []
}

async function inspectCards(bytes: AsyncIterable<Buffer>, options: RowOptions, at: number): Promise<CardFindings> {
  const inspection = openCardInspection(at)
  try {
    for await (const rows of readRows(bytes, options)) for (const row of rows) inspection.see(row)
    return inspection.end()
  } finally {
    inspection.close()
  }
}

/** Returns the first bytes, and a stream of all bytes. */
async function peek(bytes: AsyncIterable<Buffer>) {
  const source = bytes[Symbol.asyncIterator]()
  const parts: Buffer[] = []
  let size = 0
  let isWhole = false
  while (size < HEAD_BYTES && !isWhole) {
    const next = await source.next()
    if (next.done) isWhole = true
    else {
      parts.push(next.value)
      size += next.value.length
    }
  }
  async function* all(): AsyncGenerator<Buffer> {
    yield* parts
    if (!isWhole) for (let next = await source.next(); !next.done; next = await source.next()) yield next.value
  }
  return { head: Buffer.concat(parts).subarray(0, HEAD_BYTES), isWhole, all: all() }
}

async function drain(bytes: AsyncIterable<Buffer>): Promise<void> {
  for await (const _ of bytes);
}
