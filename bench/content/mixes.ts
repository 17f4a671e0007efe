// The mixes of `npm run bench -- --content`: what a file may hold, and how it may be asked, one after the other. The list is
// fixed: a mix that changes has other figures than before, so a new idea is a new mix (test/bench/content.test.ts holds the
// bytes of each).
import { type Card, cardAt, otherPanOf, serialOf } from './card.ts'
import { FORMATS } from './formats.ts'
import type { ContentFile, Mix } from './mix.ts'
import { ASCII, NAMES, nameOf, SCRIPTS, type Script } from './names.ts'
import { ADYEN, BRAINTREE, NUMERIC, type OwnerFile, SHORT, STRIPE, UUIDS } from './owners.ts'

const OWN = ['reference', 'card_number', 'expiry_month', 'expiry_year', 'cardholder_name'] as const

interface OwnCells {
  reference?: (card: Card) => string
  number?: (card: Card) => string
  year?: (card: Card) => string
  name?: (card: Card) => string
  /** Further columns by name. */
  more?: Readonly<Record<string, (card: Card) => string>>
}

/** Our own columns; what isn't given is as in the base. */
function ownFile({ reference, number, year, name, more = {} }: OwnCells = {}): ContentFile {
  return {
    extension: 'csv',
    header: csvLine([...OWN, ...Object.keys(more)]),
    lineAt(index) {
      const card = cardAt(index)
      return csvLine([
        reference?.(card) ?? `cust-${serialOf(index)}`,
        number?.(card) ?? card.pan,
        card.month,
        year?.(card) ?? card.year,
        name?.(card) ?? nameOf(ASCII, card.draw),
        ...Object.values(more).map(cellOf => cellOf(card)),
      ])
    },
  }
}

function ownerFile({ profile, header, cellsOf }: OwnerFile, change: (card: Card) => Card = card => card): ContentFile {
  const cellsAt = (index: number) => cellsOf(change(cardAt(index)))
  if (profile.format.type !== 'ndjson')
    return { extension: 'csv', header: csvLine(header), lineAt: index => csvLine(cellsAt(index)) }
  return {
    extension: 'ndjson',
    lineAt(index) {
      const cells = cellsAt(index)
      return JSON.stringify(Object.fromEntries(header.map((name, place) => [name, cells[place]])))
    },
  }
}

function csvLine(cells: readonly string[]): string {
  return cells.map(cell => (/[",\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell)).join(',')
}

const BASE = ownFile()

const ofScript = (script: Script): Mix => ({
  about: `names: ${script}`,
  file: ownFile({ name: ({ draw }) => nameOf(NAMES[script], draw) }),
  group: 'parts',
})

const ofOwners = (file: OwnerFile): Mix => ({
  about: file.profile.title,
  file: ownerFile(file),
  profile: file.profile,
})

/** One row of 200 has a wrong check digit, and one of 200 a number with too few digits or with a letter. */
function mistyped({ index, pan }: Card): string {
  const place = index % 200
  if (place === 0) return `${pan.slice(0, -1)}${(Number(pan.at(-1)) + 1) % 10}`
  if (place === 100) return index % 400 === 100 ? pan.slice(0, 11) : `${pan.slice(0, 7)}O${pan.slice(8)}`
  return pan
}

const MIXES_BY_NAME = {
  base: { about: 'ASCII names, short references', file: BASE },
  names: {
    about: `names of ${SCRIPTS.length} scripts and forms, in turn`,
    file: ownFile({ name: ({ index, draw }) => nameOf(NAMES[SCRIPTS[index % SCRIPTS.length] as Script], draw) }),
  },
  'reference-uuid': { about: 'references: UUIDs', file: ownFile({ reference: ({ draw }) => draw.uuid() }) },
  'reference-digits': {
    about: 'references of 16 digits, which are no card of the file',
    file: ownFile({ reference: ({ index, draw }) => `90${draw.digits(7)}${serialOf(index)}` }),
  },
  'reference-urn': {
    about: 'references: URNs with a date and numbers',
    file: ownFile({ reference: ({ index, draw }) => `urn:order:2026-11-29:${draw.digits(4)}-${serialOf(index)}` }),
  },
  'reference-unicode': {
    about: 'references: non-ASCII text',
    file: ownFile({
      reference: ({ index, draw }) => `${draw.from(['Größe', '注文', 'заказ', 'Çağrı'])} № ${index + 1}`,
    }),
  },
  'reference-customer': {
    about: 'references: customer numbers of 12 digits',
    file: ownFile({ reference: ({ index, draw }) => `70${draw.digits(3)}${serialOf(index)}` }),
  },
  members: {
    about: 'brand, type, token expiry, sequence; 3 % without expiry date',
    file: {
      ...ownFile(),
      header: csvLine([...OWN, 'card_brand', 'token_type', 'token_expiry_date', 'sequence_number']),
      lineAt(index) {
        const { pan, month, year, brand, draw } = cardAt(index)
        const expiry = index % 33 === 0 ? ['', ''] : [month, year]
        const name = nameOf(ASCII, draw)
        const ends = draw.below(2) === 0 ? `${year}-12-31` : ''
        const sequence = draw.below(3) === 0 ? '' : String(1 + draw.below(3))
        return csvLine([`cust-${serialOf(index)}`, pan, ...expiry, name, brand, 'REUSE', ends, sequence])
      },
    },
  },
  'owners-short': ofOwners(SHORT),
  'owners-stripe': ofOwners(STRIPE),
  'owners-adyen': ofOwners(ADYEN),
  'owners-braintree': ofOwners(BRAINTREE),
  'owners-numeric': ofOwners(NUMERIC),
  'owners-uuid': ofOwners(UUIDS),
  known: {
    about: '10 % of the cards known, with an older expiry date',
    file: BASE,
    before: { file: ownFile({ year: ({ year }) => String(Number(year) - 3) }), every: 10 },
  },
  refused: { about: '1 % refused: check digits, and mistyped numbers', file: ownFile({ number: mistyped }) },
  'dry-run': { about: 'the base as a dry run', file: BASE, args: ['--dry-run'] },
  newest: {
    about: 'the base with a source time a row, and --on-conflict newest',
    file: ownFile({ more: { updated_at: ({ index }) => timeAt(index) } }),
    args: ['--on-conflict', 'newest', '--source-time', 'updated_at'],
  },
  relink: {
    about: 'owners-stripe with --relink; 1 % of the owners had another number',
    file: ownerFile(STRIPE),
    profile: STRIPE.profile,
    args: ['--relink'],
    before: { file: ownerFile(STRIPE, card => ({ ...card, pan: otherPanOf(card.index) })), every: 100 },
  },
  update: {
    about: 'token-update: new expiry date and name for each token made before',
    file: BASE,
    args: ['--record-kind', 'token-update'],
    before: { file: BASE, every: 1 },
    update: {
      header: 'id,reference,expiry_month,expiry_year,cardholder_name',
      lineAt(index, token) {
        const { month, year, draw } = cardAt(index)
        return csvLine([token, `cust-${serialOf(index)}`, month, String(Number(year) + 4), nameOf(ASCII, draw)])
      },
    },
  },
} satisfies Record<string, Mix>

export const MIXES: Readonly<Record<string, Mix>> = {
  ...MIXES_BY_NAME,
  ...Object.fromEntries(SCRIPTS.map(script => [`names-${script}`, ofScript(script)])),
  ...FORMATS,
}

/** A moment of November 2026, which grows by the row. */
function timeAt(index: number): string {
  const ms = Date.UTC(2026, 10, 1) + (index % 2_000_000) * 1000
  return new Date(ms).toISOString().replace('.000Z', 'Z')
}

/** The mixes of a list of names between commas; `all`: those of no group; `parts`, `formats`: those of the group. */
export function namedMixes(text: string): string[] {
  const names = text.split(',').flatMap(name => {
    const group = name === 'all' ? undefined : name
    const mixes = Object.keys(MIXES).filter(one => MIXES[one]?.group === group)
    return mixes.length > 0 ? mixes : [name]
  })
  const unknown = names.filter(name => !Object.hasOwn(MIXES, name))
  if (unknown.length > 0) throw new Error(`there is no mix ${unknown.join(', ')}: see --help`)
  return [...new Set(names)]
}

/** The lines of a file of so many rows, each with its end. `every`: only each nth row. */
export function* linesOf({ header, lineAt, footer }: ContentFile, rows: number, every = 1): Generator<string> {
  if (header !== undefined) yield `${header}\n`
  for (let index = 0; index < rows; index += every) yield `${lineAt(index)}\n`
  if (footer !== undefined) yield `${footer}\n`
}
