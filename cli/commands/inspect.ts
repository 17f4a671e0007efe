// `tokenmill inspect FILE`: shows what is in a file before anything of it is sent.
import { writeFile } from 'node:fs/promises'
import type { CardFindings } from '../../producers/inspect/cards.ts'
import type { ColumnGuess } from '../../producers/inspect/column-guess.ts'
import { type Inspection, inspect } from '../../producers/inspect/inspect.ts'
import type { OwnerFindings } from '../../producers/inspect/owners.ts'
import { codeOf, FileError } from '../../producers/rows/file-error.ts'
import { shown } from '../../producers/rows/layout.ts'
import { openSource, validateSource } from '../../producers/rows/source.ts'
import { systemClock } from '../../src/clock.ts'
import { onSignal } from '../../src/lifetime.ts'
import type { JsonOption } from '../command.ts'
import { EXIT, Stop } from '../exit.ts'
import { decryption } from '../open/encrypted-file.ts'
import { facts, paragraphs, print, say, type Terminal, table } from '../terminal.ts'
import { profileOf } from './profile.ts'

interface Options extends JsonOption {
  from?: string
  profile?: string
  decryptKey?: string
  verifyKey?: string
}

export async function run(terminal: Terminal, file: string, options: Options): Promise<void> {
  const given = options.from === undefined ? undefined : await profileOf(options.from)
  const read = (bytes: AsyncIterable<Buffer>) => inspect(bytes, { profile: given, at: systemClock() })
  // On a signal the process exits in the ordinary way, because then it removes its temporary files.
  const leave = onSignal(['SIGINT', 'SIGTERM', 'SIGHUP'], () => process.exit(EXIT.interrupted))
  const found = await inspectFile(terminal, file, options, read).finally(leave)
  print(terminal, options, found, textOf(found))
  for (const sentence of [...found.warnings, ...found.open]) say(terminal, `tokenmill: ${sentence}`)
  if (options.profile !== undefined) await writeDraft(options.profile, found)
}

async function inspectFile(
  terminal: Terminal,
  file: string,
  options: Options,
  read: (bytes: AsyncIterable<Buffer>) => Promise<Inspection>,
): Promise<Inspection> {
  const source = { path: file, ...decryption(terminal, options) }
  if (file === '-') return read((await openSource(source)).bytes)
  return (await validateSource(source, read)).checked
}

async function writeDraft(path: string, { profile: whole, sketch, open }: Inspection): Promise<void> {
  const profile = whole ?? sketch
  if (!profile) throw new Stop(`${path} is not written: ${open.join(' ')}`, EXIT.failure)
  const text = `${JSON.stringify(profile, null, 2)}\n`
  await writeFile(path, text, { flag: 'wx', mode: 0o600 }).catch((error: unknown) => {
    const wrong = `${path} cannot be written (${codeOf(error)}).`
    throw new FileError('usage', wrong, 'Give a name that is free, in a folder that you may write to.', error)
  })
}

function textOf({ form, hasHeader, rowsJudged, columns, cards }: Inspection): string[] {
  const head = facts({
    form: form.type,
    encoding: form.encoding,
    delimiter: form.delimiter && JSON.stringify(form.delimiter),
    header: hasHeader === undefined ? undefined : hasHeader ? 'yes' : 'none; columns go by number',
  })
  const parts = [head]
  if (columns.length > 0) parts.push([`columns, by the first ${rowsJudged} rows:`, ...columnsText(columns)])
  if (cards) parts.push(cardsText(cards))
  return paragraphs(parts)
}

function columnsText(columns: readonly ColumnGuess[]): string[] {
  const rows = columns.map(column => [
    shown(column.name),
    column.meaning ?? '-',
    column.meaning === undefined ? '' : `${Math.floor(column.sure * 100)} %`,
    String(column.filled),
    formsText(column),
  ])
  return table(['column', 'seems to be', 'sure', 'filled', ''], rows)
}

/** `MMYY 98, YYMM 12; both 10` */
function formsText({ forms = {}, ambiguous = 0, separated = 0 }: ColumnGuess): string {
  const counts = Object.entries(forms).map(([form, n]) => `${form} ${n}`)
  const both = ambiguous > 0 ? [`MMYY and YYMM ${ambiguous}`] : []
  const separators = separated > 0 ? [`with separators ${separated}`] : []
  return [...counts, ...both, ...separators].join(', ')
}

function cardsText(cards: CardFindings): string[] {
  const { references, sharing } = cards
  return facts({
    rows: String(cards.rows),
    cards: String(cards.cards),
    'different cards': cards.distinctCards === undefined ? 'unknown: cards are encrypted' : String(cards.distinctCards),
    'rows with a reference': String(references.rows),
    'references that repeat': String(references.repeated),
    'references that share a card': sharing === undefined ? undefined : String(sharing),
    ...(cards.owners && ownersOf(cards.owners)),
    expired: String(cards.expired),
    'without expiry': cards.withoutExpiry === 0 ? undefined : String(cards.withoutExpiry),
    ...countsOf('brand', cards.brands),
    ...countsOf('expires in', cards.expiryYears),
    ...countsOf('would be rejected,', cards.rejected),
    ...countsOf('would be skipped,', cards.skipped),
    ...countsOf('would be repaired,', cards.repairs),
  })
}

function ownersOf({ rows, owners, customers, networkIds, linkIds, ...more }: OwnerFindings): Record<string, string> {
  const { distinct, withOneRow, rowsMost } = customers
  return {
    'cards with an owner': String(rows),
    'different owners': `${owners.distinct}, ${owners.repeated} of them in several rows`,
    'owners with several numbers': more.numbersBeyondOne === 0 ? 'none' : `${more.numbersBeyondOne} numbers too many`,
    'owners that share a card': String(more.sharing),
    customers: distinct === 0 ? 'none' : `${distinct}, ${withOneRow} of them with one card; the most have ${rowsMost}`,
    'network transaction ids': withOf(networkIds),
    'transaction link ids': `${withOf(linkIds)}; ${linkIds.unusual} of unusual form`,
  }
}

/** `with 9, without 1` */
function withOf(counts: { with: number; without: number }): string {
  return `with ${counts.with}, without ${counts.without}`
}

function countsOf(what: string, counts: Record<string, number>): Record<string, string> {
  const sorted = Object.entries(counts).sort(([a], [b]) => (a < b ? -1 : 1))
  return Object.fromEntries(sorted.map(([name, n]) => [`${what} ${name}`, String(n)]))
}
