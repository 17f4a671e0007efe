// Writes a made-up file of cards for the demo and the bench, with numbers of published test BINs; a few per cent of the
// rows are wrong on purpose, repeated or expired. The same options in the same month give the same rows. None of the
// cards was ever issued.
import { createWriteStream } from 'node:fs'
import { pipeline } from 'node:stream/promises'
import { encryptOpenpgp } from '../../producers/rows/openpgp/decrypt.ts'
import { panOf } from './pan.ts'

export interface SampleOptions {
  rows: number
  seed: number
  /** Cards expire relative to this time, ms since the epoch. */
  now: number
  /** Armored OpenPGP public key; without one the file is in the clear. */
  encryptTo?: string | undefined
  /** The columns of Stripe's CSV: a repeated card is one of two customers. Else our own columns. */
  isStripe?: boolean | undefined
}

/** The kinds of rows; each row of a sample is of one kind. */
export const SAMPLE_ROWS = ['good', 'duplicate', 'expired', 'luhn', 'length', 'month', 'name', 'broken'] as const
export type SampleRow = (typeof SAMPLE_ROWS)[number]
export type SampleCounts = Record<SampleRow, number>

// How many rows of a thousand are of each kind; the others are good.
const SHARES: readonly (readonly [SampleRow, number])[] = [
  ['duplicate', 15],
  ['expired', 20],
  ['luhn', 8],
  ['length', 4],
  ['month', 5],
  ['name', 4],
  ['broken', 4],
]

const FIRST = ['ANNA', 'BEN', 'CLARA', 'DAVID', 'ELIF', 'FATIMA', 'GEORG', 'HANA', 'IVAN', 'JOSÉ', 'KWAME', 'LI']
const LAST = ['MEYER', 'NGUYEN', 'OKAFOR', 'PETROV', 'QUINN', 'ROSSI', 'SATO', 'TAYLOR', 'ÜNAL', 'VARGA', 'WEISS']
const LONG_NAME = 'MARIA ALEXANDRA CONSTANZE VON UND ZU LICHTENFELS'

const PIECE_CHARACTERS = 64 * 1024
/** How many rows back a repeated card may be. */
const RECENT = 997

export async function writeSample(path: string, options: SampleOptions): Promise<SampleCounts> {
  const counts = Object.fromEntries(SAMPLE_ROWS.map(row => [row, 0])) as SampleCounts
  const clear = sampleBytes(options, counts)
  const bytes = options.encryptTo === undefined ? clear : encryptOpenpgp(clear, options.encryptTo)
  await pipeline(bytes, createWriteStream(path, { mode: 0o600 }))
  return counts
}

/** Counts the rows into `counts` as they are made. */
async function* sampleBytes(options: SampleOptions, counts: SampleCounts): AsyncGenerator<Buffer> {
  const { rows, seed } = options
  const today = new Date(options.now)
  const year = today.getUTCFullYear()
  const month = today.getUTCMonth() + 1
  const draw = drawer(seed)
  const recent: Card[] = []
  const start = Math.floor(draw() * 1e8)
  const { header, line, cut } = options.isStripe ? STRIPE : OWN
  let text = `${header}\n`
  for (let index = 0; index < rows; index++) {
    let row = speciesOf(draw() * 1000)
    if (row === 'duplicate' && recent.length === 0) row = 'good'
    const pan = panOf(index, start)
    const name = nameOf(draw)
    const ahead = Math.floor(draw() * 60) + 1
    const good = { pan, expiry: expiryOf(year, month, ahead), name }
    counts[row]++
    if (row === 'good') recent[Math.min(recent.length, index % RECENT)] = good
    const repeated = row === 'duplicate' ? recent[Math.floor(draw() * recent.length)] : undefined
    const spoilt = SPOILT[row]?.(good, { year, month, ahead })
    text += row === 'broken' ? cut(index, { ...good, expiry: `1,${year}` }) : line(index, repeated ?? spoilt ?? good)
    text += '\n'
    if (text.length >= PIECE_CHARACTERS) {
      yield Buffer.from(text)
      text = ''
    }
  }
  if (text !== '') yield Buffer.from(text)
}

interface Card {
  pan: string
  /** Month and year, two cells. */
  expiry: string
  name: string
}

type Spoil = (card: Card, at: { year: number; month: number; ahead: number }) => Card

const SPOILT: Partial<Record<SampleRow, Spoil>> = {
  expired: (card, { year, month, ahead }) => ({ ...card, expiry: expiryOf(year, month, -ahead) }),
  luhn: card => ({ ...card, pan: `${card.pan.slice(0, -1)}${(Number(card.pan.at(-1)) + 1) % 10}` }),
  length: card => ({ ...card, pan: card.pan.slice(0, 11) }),
  month: (card, { year }) => ({ ...card, expiry: `13,${year + 2}` }),
  name: card => ({ ...card, name: LONG_NAME }),
}

interface Shape {
  header: string
  line(index: number, card: Card): string
  /** A line with too few fields, or with quotes that do not match. */
  cut(index: number, card: Card): string
}

const serial = (index: number) => String(index + 1).padStart(7, '0')

const OWN: Shape = {
  header: 'reference,card_number,expiry_month,expiry_year,cardholder_name',
  line: (index, { pan, expiry, name }) => `cust-${serial(index)},${pan},${expiry},${name}`,
  cut: (index, { pan, name, expiry }) =>
    index % 2 === 0
      ? `cust-${serial(index)},${pan},1`
      : `cust-${serial(index)},${pan},${expiry},"${name.slice(1, 4)}"X`,
}

/** Each customer has two cards, of which the first is the default one. */
const STRIPE: Shape = {
  header:
    'description,name,email,id,card.address_city,card.address_country,card.address_line1,card.address_line2,card.address_state,card.address_zip,card.exp_month,card.exp_year,card.id,card.name,card.number,default_source,card.transaction_ids',
  line(index, { pan, expiry, name }) {
    const first = index - (index % 2)
    const owner = `,,,cus_${serial(first)},,,,,,`
    return `${owner},${expiry},card_${serial(index)},${name},${pan},card_${serial(first)},${networkIdOf(index)}`
  },
  cut: (index, { pan, name }) =>
    index % 2 === 0 ? `,,,cus_${serial(index)},${pan}` : `,,,cus_${serial(index)},"${name.slice(1, 4)}"X`,
}

/** The network id; '' for every fifth card, as if none were known. Leading zeros belong to the id. */
function networkIdOf(index: number): string {
  return index % 5 === 4 ? '' : `0161${String((index + 1) * 35_317).padStart(11, '0')}`
}

/**
 * A random number generator (mulberry32): the same numbers from 0 to below 1 for the same seed. Only good enough for
 * samples.
 */
export function drawer(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

function speciesOf(drawn: number): SampleRow {
  let bound = 0
  for (const [row, share] of SHARES) {
    bound += share
    if (drawn < bound) return row
  }
  return 'good'
}

// Every hundredth name is written as `"LAST, FIRST"`, so that a sample has quotes.
function nameOf(draw: () => number): string {
  const first = FIRST[Math.floor(draw() * FIRST.length)]
  const last = LAST[Math.floor(draw() * LAST.length)]
  return draw() < 0.01 ? `"${last}, ${first}"` : `${first} ${last}`
}

/** Month and year, `months` after (or before) the given month, as two cells. */
function expiryOf(year: number, month: number, months: number): string {
  const whole = year * 12 + month - 1 + months
  return `${(whole % 12) + 1},${Math.floor(whole / 12)}`
}
