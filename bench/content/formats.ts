// The cards of the base in every form of file that the command reads: what is measured is the command.
import type { FileFormat } from '../../producers/rows/profile/format.ts'
import type { Profile } from '../../producers/rows/profile/profile-schema.ts'
import { cardAt, serialOf } from './card.ts'
import type { ContentFile, Mix } from './mix.ts'
import { ASCII, nameOf } from './names.ts'

const FIELDS = ['reference', 'number', 'month', 'year', 'holder'] as const
/** The characters of each field of a fixed-width record. */
const WIDTHS = [12, 19, 2, 4, 30] as const

const cellsAt = (index: number) => {
  const { pan, month, year, draw } = cardAt(index)
  return [`cust-${serialOf(index)}`, pan, month, year, nameOf(ASCII, draw)]
}

const quotedLine = (cells: readonly string[]) => cells.map(cell => `"${cell}"`).join(',')

const objectAt = (index: number) => {
  const cells = cellsAt(index)
  return JSON.stringify(Object.fromEntries(FIELDS.map((name, place) => [name, cells[place]])))
}

function inFormat(about: string, format: FileFormat, file: ContentFile): Mix {
  return { about, file, profile: profileOf(`content-${format.type}`, about, format), group: 'formats' }
}

function profileOf(name: string, title: string, format: FileFormat): Profile {
  return {
    profile: 1,
    name,
    title,
    format,
    columns: {
      reference: '{reference}',
      card_number: { from: 'number' },
      expiry: { month: 'month', year: 'year' },
      cardholder_name: { from: ['holder'] },
    },
  }
}

const QUOTED: ContentFile = {
  extension: 'csv',
  header: quotedLine(FIELDS),
  lineAt: index => quotedLine(cellsAt(index)),
}

const LENGTH = WIDTHS.reduce((sum, width) => sum + width, 0)
const columns = FIELDS.map((name, place) => ({
  name,
  start: 1 + WIDTHS.slice(0, place).reduce((sum, width) => sum + width, 0),
  length: WIDTHS[place] ?? 0,
}))

export const FORMATS: Readonly<Record<string, Mix>> = {
  'format-quoted': inFormat('CSV, every field in quotes', { type: 'delimited' }, QUOTED),
  'format-gzip': inFormat('the same, gzip', { type: 'delimited' }, { ...QUOTED, isPacked: true }),
  'format-ndjson': inFormat('NDJSON', { type: 'ndjson' }, { extension: 'ndjson', lineAt: objectAt }),
  'format-json': inFormat(
    'nested JSON: customers with a card each',
    { type: 'json', records: 'customers[].cards[]' },
    {
      extension: 'json',
      header: '{"customers":[',
      lineAt: index => `${index === 0 ? '' : ','}{"id":"c-${serialOf(index)}","cards":[${objectAt(index)}]}`,
      footer: ']}',
    },
  ),
  'format-fixed': inFormat(
    'fixed width',
    { type: 'fixed', length: LENGTH, columns },
    {
      extension: 'txt',
      lineAt: index =>
        cellsAt(index)
          .map((cell, place) => cell.padEnd(WIDTHS[place] ?? 0))
          .join(''),
    },
  ),
}
