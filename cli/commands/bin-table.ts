// `tokenmill bin-table import FILE`: reads issuer data by first digits from the operator's CSV. Imports the whole file
// or nothing.
import { createReadStream } from 'node:fs'
import { type CsvRow, readCsv } from '../../producers/rows/csv.ts'
import { codeOf } from '../../producers/rows/file-error.ts'
import { isRefusal, REASONS } from '../../src/errors.ts'
import * as audits from '../../src/store/access/audits.ts'
import type { Store } from '../../src/store/pool.ts'
import * as binRanges from '../../src/store/token/bin-ranges.ts'
import { type BinRange, parseBinRow } from '../../src/token/bin.ts'
import type { JsonOption } from '../command.ts'
import { Stop } from '../exit.ts'
import { openCommandStore, withSession } from '../open/open.ts'
import { actor, print, type Terminal } from '../terminal.ts'

const ROWS_PER_STATEMENT = 5_000
const RANGES_MAX = 2_000_000

export function importFile(terminal: Terminal, file: string, options: JsonOption): Promise<void> {
  return withSession(terminal, async session => {
    const ranges = await readRanges(file, session.config.localSchemes)
    const { store } = await openCommandStore(session)
    const written = await save(store, ranges)
    const unchanged = ranges.length - written
    const text = `${ranges.length} ranges read: ${written} written, ${unchanged} unchanged`
    print(terminal, options, { ranges: ranges.length, written, unchanged }, text)
  })
}

type NewRange = Omit<BinRange, 'id'>

function save(store: Store, ranges: readonly NewRange[]): Promise<number> {
  return store.transaction(async db => {
    let written = 0
    for (let at = 0; at < ranges.length; at += ROWS_PER_STATEMENT) {
      written += await binRanges.saveAll(db, ranges.slice(at, at + ROWS_PER_STATEMENT))
    }
    const detail = { ranges: ranges.length, written }
    await audits.insert(db, { actor: actor(), action: 'bin-table.import', subject: 'bin-table', detail })
    return written
  })
}

/** Reads all rows. Stops at the first wrong one and names its line. */
async function readRanges(file: string, localSchemes: readonly string[]): Promise<NewRange[]> {
  const ranges = new Map<string, NewRange>()
  let header: readonly string[] | undefined
  for await (const { line, fields } of readRowsOf(file)) {
    if (header === undefined) {
      header = fields
      continue
    }
    const range = parseBinRow(rowOf(header, fields), localSchemes)
    if (isRefusal(range)) throw new Stop(`${file}, line ${line}, ${range.field}: ${REASONS[range.reason].text}`)
    if (ranges.has(range.prefix)) throw new Stop(`${file}, line ${line}: the prefix ${range.prefix} occurs twice.`)
    ranges.set(range.prefix, range)
    if (ranges.size > RANGES_MAX)
      throw new Stop(`${file}: a BIN table has at most ${RANGES_MAX} ranges; shorten the file.`)
  }
  if (ranges.size === 0)
    throw new Stop(`${file} holds no range; the first line must name the columns, such as prefix,brand.`)
  return [...ranges.values()]
}

async function* readRowsOf(file: string): AsyncGenerator<CsvRow> {
  try {
    for await (const rows of readCsv(createReadStream(file) as AsyncIterable<Buffer>))
      for (const row of rows) {
        if (row.rejected !== undefined) throw new Stop(`${file}, line ${row.line}: ${REASONS[row.rejected].text}`)
        yield row
      }
  } catch (error) {
    const code = codeOf(error)
    if (error instanceof Stop || code === undefined) throw error
    throw new Stop(code === 'ENOENT' ? `${file} does not exist.` : `${file} can't be read (${code}).`)
  }
}

function rowOf(header: readonly string[], fields: readonly string[]): Record<string, string> {
  return Object.fromEntries(header.map((name, at) => [name, fields[at] ?? '']))
}
