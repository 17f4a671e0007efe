// The records of a list that a program sends as a batch, as the rows of a file are (producers/rows): what is wrong with one is
// told in its result, in its place.
import type { z } from 'zod'
import { CHUNK, type RecordKind } from '../../src/job/choices.ts'
import type { ColumnRecord } from '../../src/job/record-columns.ts'
import type { RECORD_REQUESTS } from '../../src/job/token-batch.ts'
import { couldLookLikeCard } from '../../src/token/pan-lookalike.ts'
import type { SchemeAction } from '../../src/token/scheme.ts'
import { arePlain } from '../rows/column-record.ts'
import { checkReference, type Row, rejectRow } from '../rows/record.ts'

type Requests = { [Kind in keyof typeof RECORD_REQUESTS]: z.input<(typeof RECORD_REQUESTS)[Kind]> } & {
  'scheme-token': { id: string; action: SchemeAction }
}

/** A record of a batch: what is asked for, and the caller's own name for it, up to 128 printable characters, in the results. */
export type BatchRecord<Kind extends RecordKind = RecordKind> = { reference?: string | undefined } & Requests[Kind]

type Card = NonNullable<Requests['token-create']['card']>
type Given = { reference?: string | undefined; card?: Card | undefined; on_file?: object | undefined }

const CARD_COLUMNS: ReadonlySet<string> = new Set(['cardNumber', 'expiryMonth', 'expiryYear', 'cardholderName'])

/** `line`: the record's place in the list, from 1. */
export function rowOf(line: number, kind: RecordKind, record: BatchRecord): Row {
  const { reference = '', ...request } = record as Given
  const number = request.card === undefined ? '' : String(request.card.cardNumber)
  const named = reference === '' ? undefined : reference
  const spoilt = checkReference(reference, number)
  if (spoilt !== undefined) return rejectRow(line, spoilt, undefined, undefined, number)
  const row = { line, reference: named, rejected: undefined, number, echo: undefined }
  const columns = kind === 'token-create' ? columnsOf(line, reference, request) : undefined
  if (columns) return { ...row, json: '', columns }
  const json = JSON.stringify({ line, ...(named !== undefined && { reference: named }), request })
  if (Buffer.byteLength(json) > CHUNK.lineBytesMax) return rejectRow(line, 'row_too_long', named, undefined, number)
  const cardLike = textsOf(request.on_file).filter(couldLookLikeCard)
  return { ...row, json, ...(cardLike.length > 0 && { cardLike }) }
}

/** The record, if it is nothing but a card in clear with its expiry date, and can stand in columns. */
function columnsOf(line: number, reference: string, request: Given): ColumnRecord | undefined {
  const { card } = request
  if (card === undefined || Object.keys(request).length > 1) return undefined
  const { cardNumber, expiryMonth, expiryYear, cardholderName = '' } = card
  if (typeof cardNumber !== 'string' || Object.keys(card).some(name => !CARD_COLUMNS.has(name))) return undefined
  const [month, year] = [wholeOf(expiryMonth), wholeOf(expiryYear)]
  if (month === undefined || year === undefined) return undefined
  if (!arePlain({ reference, cardNumber, cardholderName })) return undefined
  return { line, reference, cardNumber, expiryMonth: month, expiryYear: year, cardholderName }
}

function wholeOf(given: string | number | undefined): number | undefined {
  const value = typeof given === 'string' && /^\d{1,4}$/.test(given) ? Number(given) : given
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 ? value : undefined
}

function textsOf(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsOf) : []
}
