// Reads the plain records of a chunk into columns. A plain record is a create of a reuse token in the chunk's scope with a
// card in clear, whatever else it says of the card and its owner. In place of the card in clear it may have one encrypted as JWE, for which a place in the columns is kept; prepare.ts opens it. Loops over columns
// cost less time than an object and its checks for each record. Every other record, and every record with any fault, is
// left to chunk.ts: nothing is refused here.
import { isUtf8 } from 'node:buffer'
import { ALIAS } from '../../../src/job/choices.ts'
import { ENCRYPTED_CARD_MAX, isArmorSafe } from '../../../src/job/envelope/text.ts'
import { claimOf, OnFileRecord, readUsualOnFile, textsIn } from '../../../src/job/on-file.ts'
import { type BlockForm, inOrder, type ReadColumns, readColumns, rowAt } from '../../../src/job/record-columns.ts'
import { CHUNK, RECORD_REQUESTS, type TokenBatch } from '../../../src/job/token-batch.ts'
import type { Scope } from '../../../src/store/access/scopes.ts'
import type { Claim } from '../../../src/token/on-file.ts'
import { couldLookLikeCard } from '../../../src/token/pan-lookalike.ts'
import type { Giver } from '../../../src/token/token.ts'
import { formOf } from '../../../src/vault/capture/open-card.ts'
import { numbersOf, pansOf, type ReadChunk, readRecord } from '../chunk.ts'
import {
  type CardField,
  type CardRules,
  clearCardOf,
  isPlainReference,
  openRecords,
  type PlainCard,
  type PlainRecords,
  putCard,
  type SealedRecord,
} from './records.ts'

export interface PlainReader {
  records: PlainRecords
  /** The records whose cards are still encrypted. */
  sealed: SealedRecord[]
  /** Whether the record of this line of a block is plain: then it is added to the columns. */
  take(line: string): boolean
  /** The same for the record at a place of columns. */
  takeAt(columns: Columns, at: number): boolean
}

type Columns = ReadColumns['columns']

const HEAD: ReadonlySet<string> = new Set(['line', 'reference', 'request'])
const REQUEST: ReadonlySet<string> = new Set([
  ...['token_scope', 'card', 'on_file'],
  ...['card_brand', 'token_type', 'token_expiry_date', 'source_time'],
])
const SEALED_REQUEST: ReadonlySet<string> = new Set([
  ...['token_scope', 'encrypted_card', 'public_key_alias', 'on_file'],
  'source_time',
])
const CARD: ReadonlySet<string> = new Set([
  ...['cardNumber', 'expiryMonth', 'expiryYear', 'cardholderName'],
  ...['sequenceNumber', 'startMonth', 'startYear'],
])
const LINE_MAX = 2_147_483_647
const UTF8_BYTES_MAX = 3

interface Raw {
  [name: string]: unknown
}

interface Head {
  line: number
  reference: string | undefined
}

/** Who gives a record's data; undefined for a wrong source time. */
export type GiverOf = (line: number, sourceTime: unknown) => Giver | undefined

/** A reader for one chunk, whose records are in this scope. `giverOf`: only for a batch with `newest`. */
export function openPlainReader(
  scope: Pick<Scope, 'tokenScope' | 'keepBilling'>,
  rules: CardRules,
  giverOf?: GiverOf,
): PlainReader {
  const { tokenScope } = scope
  const records = openRecords()
  const sealed: SealedRecord[] = []
  const add = (
    { line, reference }: Head,
    field: CardField,
    card: PlainCard | undefined,
    { claim, cardLike }: PlainClaim = NO_CLAIM,
    sourceTime?: unknown,
  ): boolean => {
    if (!card || !isPlainReference(reference ?? '', card.pan)) return false
    const giver = giverOf?.(line, sourceTime)
    if (giverOf ? !giver : sourceTime !== undefined) return false
    if (giver) records.givers.push(giver)
    putCard(records, records.lines.length, card)
    records.lines.push(line)
    records.references.push(reference)
    records.fields.push(field)
    records.claims.push(claim)
    records.cardLike.push(cardLike.length > 0 || couldLookLikeCard(reference) ? cardLike : undefined)
    return true
  }
  const addSealed = (head: Head, request: Raw, claim: PlainClaim): boolean => {
    const { encrypted_card: encryptedCard, public_key_alias: alias } = request
    if (!hasOnly(request, SEALED_REQUEST) || !isSealedCard(encryptedCard)) return false
    if (typeof alias !== 'string' || !ALIAS.test(alias)) return false
    if (!add(head, 'body.encrypted_card', NOT_OPENED, claim, request['source_time'])) return false
    sealed.push({ place: records.lines.length - 1, encryptedCard, alias })
    return true
  }
  return {
    records,
    sealed,
    take(text) {
      if (text.length * UTF8_BYTES_MAX > CHUNK.lineBytesMax) return false
      const value = parsed(text)
      if (!isObject(value) || !isPlainHead(value)) return false
      const { line, reference, request } = value
      const head = { line, reference: reference === '' ? undefined : reference }
      if (!isObject(request)) return false
      if (request['token_scope'] !== undefined && request['token_scope'] !== tokenScope) return false
      const { card } = request
      const claim = plainClaim(request['on_file'], scope)
      if (!claim) return false
      if (card === undefined) return addSealed(head, request, claim)
      if (!hasOnly(request, REQUEST) || !isObject(card) || !hasOnly(card, CARD)) return false
      return add(head, 'body.card', clearCardOf(card, request, rules), claim, request['source_time'])
    },
    takeAt({ line, reference, cardNumber, expiryMonth, expiryYear, cardholderName }, at) {
      const name = reference[at]
      if (!isLine(line[at]) || typeof name !== 'string') return false
      const head = { line: line[at] as number, reference: name === '' ? undefined : name }
      const card = {
        cardNumber: cardNumber[at],
        expiryMonth: expiryMonth[at],
        expiryYear: expiryYear[at],
        cardholderName: cardholderName[at],
      }
      return add(head, 'body.card', clearCardOf(card, NO_REQUEST, rules))
    },
  }
}

export interface MixedChunk extends Omit<ReadChunk, 'requests'> {
  /** The plain records; `records` holds the others. */
  plain: PlainRecords
}

/**
 * Reads the records of a chunk. Undefined if none is plain, or if the chunk's form is unusual: then the caller reads it
 * without columns, and refuses what it must.
 */
export function readMixed(
  plaintext: Buffer,
  { request: { block }, form }: { request: Pick<TokenBatch, 'block'>; form: BlockForm },
  reader: PlainReader,
): MixedChunk | undefined {
  if (plaintext.length > CHUNK.bytesMax || !isUtf8(plaintext)) return undefined
  const chunk = openChunkReader(reader)
  const take = form === 'rows' ? takeRows : takeColumns
  if (!take(plaintext, block.records, chunk)) return undefined
  const { others, count, lastLine } = chunk.end()
  const { records: plain } = reader
  if (count !== block.records || Number.isNaN(lastLine) || plain.lines.length === 0) return undefined
  const records = others.map(({ record }) => record)
  const requests = others.map(({ request }) => request)
  const isAsked = plain.cardLike.some(texts => texts !== undefined)
  const cards = isAsked ? numbersOf(requests) : pansOf(requests, records)
  if (cards) for (const pan of plain.pans.reveal()) cards.add(pan)
  return { records, cards, plain }
}

/** Takes the records of a chunk in their order. */
interface ChunkReader {
  take(line: string): void
  takeAt(columns: Columns, at: number): void
  /** `lastLine`: NaN unless the lines grow. */
  end(): { others: ReturnType<typeof readRecord>[]; count: number; lastLine: number }
}

function openChunkReader(reader: PlainReader): ChunkReader {
  const others: ReturnType<typeof readRecord>[] = []
  let count = 0
  let lastLine = 0
  const end = (line: number | undefined) => {
    lastLine = grown(lastLine, line)
    count += 1
  }
  const lineOfOther = (text: string) => {
    const bytes = Buffer.from(text)
    const other = readRecord(bytes, 0, bytes.length, RECORD_REQUESTS['token-create'], count)
    others.push(other)
    return other.record.line
  }
  const { lines } = reader.records
  return {
    take: text => end(reader.take(text) ? lines.at(-1) : lineOfOther(text)),
    takeAt: (columns, at) => end(reader.takeAt(columns, at) ? lines.at(-1) : lineOfOther(rowAt(columns, at))),
    end: () => ({ others, count, lastLine }),
  }
}

/** False if the block has more than `most` records. */
function takeRows(plaintext: Buffer, most: number, chunk: ChunkReader): boolean {
  let count = 0
  for (const text of plaintext.toString('utf8').split('\n')) {
    if (text === '') continue
    count += 1
    if (count > most) return false
    chunk.take(text)
  }
  return true
}

/** False for a text that isn't a block in columns with this number of records. */
function takeColumns(plaintext: Buffer, records: number, chunk: ChunkReader): boolean {
  const read = readColumns(plaintext, records)
  if (!read) return false
  const { columns, others } = read
  for (const item of inOrder(read)) {
    if ('at' in item) chunk.takeAt(columns, item.at)
    else chunk.take(others[item.other]?.toString('utf8') ?? '')
  }
  return true
}

/** The line, if it is greater than the last one; else NaN, for this line and all that follow. */
function grown(last: number, line = 0): number {
  return line > last ? line : Number.NaN
}

/** The value; undefined for anything but JSON. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function isObject(value: unknown): value is Raw {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function hasOnly(value: Raw, names: ReadonlySet<string>): boolean {
  for (const name in value) if (!names.has(name)) return false
  return true
}

function isLine(line: unknown): boolean {
  return Number.isInteger(line) && (line as number) >= 1 && (line as number) <= LINE_MAX
}

function isPlainHead(head: Raw): head is Raw & { line: number; reference: string | undefined } {
  if (!hasOnly(head, HEAD)) return false
  const { line, reference } = head
  if (!isLine(line)) return false
  return reference === undefined || typeof reference === 'string'
}

/** Stands in the columns until the card of the record is opened. */
const NOT_OPENED: PlainCard = {
  pan: '',
  month: 0,
  year: 0,
  name: null,
  brand: null,
  binRange: null,
  more: undefined,
}
/** What columns of a block give beside a card. */
const NO_REQUEST: Raw = {}

/** Whether the value passes the schema, and has the form of a JWE. */
function isSealedCard(value: unknown): value is string {
  if (typeof value !== 'string' || value.length > ENCRYPTED_CARD_MAX) return false
  return isArmorSafe(value) && formOf(value) === 'jwe'
}

/** What a record says of the card's owner. */
interface PlainClaim {
  /** Undefined if it says nothing. */
  claim: Claim | undefined
  /** The texts in it that could look like a card. */
  cardLike: readonly string[]
}
const NO_CLAIM: PlainClaim = { claim: undefined, cardLike: [] }

/** Undefined if the value has a fault. */
function plainClaim(given: unknown, scope: Pick<Scope, 'tokenScope' | 'keepBilling'>): PlainClaim | undefined {
  if (given === undefined) return NO_CLAIM
  const usual = readUsualOnFile(given)
  if (usual) {
    const numbers = scope.keepBilling ? [...usual.numbers, ...usual.addressNumbers] : usual.numbers
    return { claim: claimOf(usual.onFile, scope), cardLike: numbers.filter(couldLookLikeCard) }
  }
  const { data } = OnFileRecord.safeParse(given)
  const claim = data && claimOf(data, scope)
  return claim && { claim, cardLike: textsIn(claim).filter(couldLookLikeCard) }
}
