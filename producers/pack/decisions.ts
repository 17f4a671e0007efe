// `--decisions FILE.csv`: what was decided about the exceptions of a migration, and by whom. A decision names its rows by line,
// item or reference. This file only finds the decision about a row; exceptions.ts says which rows need one.
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { z } from 'zod'
import { guard } from '../../src/csv-text.ts'
import { editedText } from '../../src/edited-text.ts'
import { holdsPossiblePan } from '../../src/token/possible-pan.ts'
import { type NamedFile, nameFrom } from '../migrate/manifest.ts'
import { readCsv } from '../rows/csv.ts'
import { codeOf, FileError } from '../rows/file-error.ts'

const text = (most: number) => z.string().trim().min(1).max(most)

export const Decision = z.strictObject({
  decision: text(64),
  /** Who decided. */
  by: text(128),
  /** A date, or a time. */
  on: z.union([z.iso.date(), z.iso.datetime({ offset: true })]),
  note: text(500).optional(),
})
export type Decision = z.infer<typeof Decision>

/** A row as the results name it. */
export interface RowName {
  batchId: string
  line: number
  item: string | null
  reference: string | null
}

export interface Decisions {
  file: NamedFile
  find(row: RowName): Decision | undefined
  /** The lines of the file whose decision is about none of the rows that were looked up, in order. */
  unused(): number[]
}

const COLUMNS = ['batch_id', 'line', 'item', 'reference', 'decision', 'by', 'on', 'note'] as const
type Column = (typeof COLUMNS)[number]
const DECISIONS_MAX = 500_000
/**
 * The most different decisions that a file may have: the pack lists each with its number of rows, for people to read.
 */
const WORDS_MAX = 100

interface Entry {
  at: number
  decision: Decision
  used: boolean
}

/**
 * `packPath`: the pack's path, relative to which the pack names the file. `batches`: the batches of the pack; a line
 * number counts within its batch.
 */
export async function readDecisions(
  path: string,
  { packPath, batches }: { packPath: string; batches: readonly string[] },
): Promise<Decisions> {
  const bytes = await readFile(path).catch(error => {
    throw new FileError('usage', `${path} cannot be read (${codeOf(error)}).`, 'Give --decisions a CSV file.', error)
  })
  const byKey = new Map<string, Entry>()
  const entries: Entry[] = []
  const words = new Set<string>()
  for await (const { at, cells } of rowsOf(path, bytes)) {
    const entry = { at, decision: decisionOf(cells, wrong(path, at)), used: false }
    const key = keyOf(cells, batches, wrong(path, at))
    const before = byKey.get(key)
    if (before) throw wrong(path, at)(`decides the same rows as line ${before.at}`)
    if (byKey.size === DECISIONS_MAX) throw wrong(path, at)(`is over the limit of ${DECISIONS_MAX} decisions`)
    if (words.add(entry.decision.decision).size > WORDS_MAX)
      throw wrong(path, at)(`brings more than ${WORDS_MAX} different decisions: use few words, and note for the rest`)
    byKey.set(key, entry)
    entries.push(entry)
  }
  return {
    file: {
      name: nameFrom(packPath, path),
      sha256: createHash('sha256').update(bytes).digest('hex'),
      bytes: bytes.length,
    },
    find(row) {
      const found = keysOf(row).flatMap(key => byKey.get(key) ?? [])[0]
      if (found) found.used = true
      return found?.decision
    },
    unused: () => entries.filter(({ used }) => !used).map(({ at }) => at),
  }
}

type Wrong = (what: string) => FileError

/** The error about a line, which doesn't quote the line's content. */
function wrong(path: string, at: number): Wrong {
  return what => new FileError('usage', `${path}, line ${at} ${what}.`, 'Correct it; docs/sign-off.md has an example.')
}

async function* rowsOf(path: string, bytes: Buffer): AsyncGenerator<{ at: number; cells: Record<Column, string> }> {
  let columns: readonly Column[] | undefined
  const text = editedText(bytes, (what, next) => new FileError('usage', `${path} ${what}.`, next))
  for await (const rows of readCsv(piecesOf(Buffer.from(text)))) {
    for (const { line: at, fields, rejected } of rows) {
      if (rejected !== undefined) throw wrong(path, at)('is no row of CSV with as many fields as the header')
      if (columns) yield { at, cells: cellsOf(columns, fields) }
      else columns = columnsOf(fields, wrong(path, at))
    }
  }
  if (!columns) throw wrong(path, 1)('is empty: the file has no header')
}

async function* piecesOf(bytes: Buffer): AsyncGenerator<Buffer> {
  yield bytes
}

function columnsOf(fields: readonly string[], refuse: Wrong): Column[] {
  const columns = fields.map(field => {
    const name = field.trim().toLowerCase()
    const column = COLUMNS.find(known => known === name)
    if (!column) throw refuse(`names a column that is none of ${COLUMNS.join(', ')}`)
    return column
  })
  const lacks = (name: Column) => !columns.includes(name)
  if (lacks('decision') || lacks('by') || lacks('on') || (lacks('line') && lacks('item') && lacks('reference')))
    throw refuse('must name decision, by, on, and line, item or reference')
  return columns
}

function cellsOf(columns: readonly Column[], fields: readonly string[]): Record<Column, string> {
  const cells = { batch_id: '', line: '', item: '', reference: '', decision: '', by: '', on: '', note: '' }
  for (const [index, column] of columns.entries()) cells[column] = fields[index]?.trim() ?? ''
  return cells
}

function decisionOf({ decision, by, on, note }: Record<Column, string>, refuse: Wrong): Decision {
  if ([decision, by, on, note].some(holdsPossiblePan)) throw refuse('holds what could be a card number')
  const parsed = Decision.safeParse({ decision, by, on, ...(note && { note }) })
  if (parsed.success) return parsed.data
  throw refuse(`has no usable ${String(parsed.error.issues[0]?.path[0])} (on: a date such as 2030-01-31)`)
}

function keyOf(
  { batch_id: batchId, line, item, reference }: Record<Column, string>,
  batches: readonly string[],
  refuse: Wrong,
) {
  if (batchId !== '' && !batches.includes(batchId)) throw refuse('names a batch that is not in the pack')
  if (reference !== '' && line === '' && item === '') return key({ batchId, reference })
  if (line === '' ? item === '' : !/^\d{1,15}$/.test(line)) throw refuse('names neither a line nor a reference')
  const only = batches.length === 1 ? batches[0] : undefined
  const batch = batchId || only
  if (batch === undefined) throw refuse('names a line, which several batches of the pack have: add batch_id')
  return key({ batchId: batch, line: line && Number(line), item, reference })
}

/**
 * The keys under which a row's decision may stand. A line alone doesn't name a row that has an item: others may have
 * that line.
 */
function keysOf({ batchId, line, item, reference }: RowName): string[] {
  const places = item === null ? [{ line }] : [{ line, item }, { item }]
  const alone = places.map(place => key({ batchId, ...place }))
  if (reference === null) return alone
  const named = [...places, { line }].map(place => key({ batchId, ...place, reference }))
  return [...named, ...alone, key({ batchId, reference }), key({ batchId: '', reference })]
}

interface KeyParts {
  batchId: string
  line?: number | ''
  item?: string
  reference?: string
}

/** A reference may be copied from the results, where a text that looks like a formula has a guard. */
function key({ batchId, line = '', item = '', reference = '' }: KeyParts): string {
  const bare = reference.startsWith("'") && guard(reference.slice(1)) === reference ? reference.slice(1) : reference
  return [batchId, line, item, bare].join('\n')
}
