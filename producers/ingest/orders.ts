// `tokenmill ingest orders`: lines of NDJSON become orders in the store. No queue is used: orders hold no card data,
// and the command has access to the store. Ingesting the same file again changes nothing, because an order is replaced
// only by a later modification.
import { createReadStream } from 'node:fs'
import type { Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { isRefusal, REASONS, type Reason } from '../../src/errors.ts'
import { readObject } from '../../src/job/envelope/strict-json.ts'
import { parse } from '../../src/job/refusal.ts'
import { IngestedOrder } from '../../src/orders/order.ts'
import * as orders from '../../src/store/ledger/orders.ts'
import type { Db } from '../../src/store/pool.ts'
import { codeOf, FileError } from '../rows/file-error.ts'
import { readLines } from '../rows/lines.ts'
import { openResults, type RefusedLine } from './results.ts'

export interface OrdersSummary {
  rows: number
  created: number
  updated: number
  /**
   * Orders that changed nothing: the store has the same or a later modification, or the file itself has a later one.
   */
  unchanged: number
  rejected: number
  /** The path of the file of refused lines. */
  results: string
}

const CHUNK = 500
const LF = 10

type Line = { line: number; order: IngestedOrder } | RefusedLine

/** Stores the orders of a file. Throws a FileError if a file can't be read or written. */
export async function ingestOrders(file: string, results: string, db: Db): Promise<OrdersSummary> {
  const summary: OrdersSummary = { rows: 0, created: 0, updated: 0, unchanged: 0, rejected: 0, results }
  const refused = await openResults(results, 'order_id')
  let complete = false
  try {
    let chunk: IngestedOrder[] = []
    const save = async () => {
      const states = latestOf(chunk)
      const { created, updated } = await orders.saveAll(db, states)
      summary.created += created
      summary.updated += updated
      summary.unchanged += chunk.length - created - updated
      chunk = []
    }
    for await (const lines of readOrders(file)) {
      for (const line of lines) {
        summary.rows += 1
        if ('order' in line) chunk.push(line.order)
        if (chunk.length === CHUNK) await save()
      }
      const wrong = lines.filter(line => 'reason' in line)
      summary.rejected += wrong.length
      await refused.write(wrong)
    }
    await save()
    if (summary.rows === 0) throw new FileError('input', 'The file holds no rows.', 'Check the export that made it.')
    await refused.complete()
    complete = true
    return summary
  } finally {
    if (!complete) await refused.discard()
  }
}

/** The state of each order of a chunk that was modified last; of states with the same time, the first. */
function latestOf(chunk: readonly IngestedOrder[]): IngestedOrder[] {
  const latest = new Map<string, IngestedOrder>()
  for (const order of chunk) {
    const known = latest.get(order.orderId)
    if (!known || Date.parse(known.modifiedDate) < Date.parse(order.modifiedDate)) latest.set(order.orderId, order)
  }
  return [...latest.values()]
}

async function* readOrders(file: string): AsyncGenerator<Line[]> {
  let line = 0
  for await (const { bytes, tooLong } of readLines(bytesOf(file), () => line)) {
    const read: Line[] = []
    if (tooLong) read.push(refusedLine(++line, 'row_too_long'))
    for (let start = 0; start < bytes.length; ) {
      const found = bytes.indexOf(LF, start)
      const end = found < 0 ? bytes.length : found
      const text = bytes.subarray(start, end)
      start = end + 1
      line += 1
      if (text.length > 1 || (text.length === 1 && text[0] !== 13)) read.push(orderOf(line, text))
    }
    yield read
  }
}

function orderOf(line: number, text: Buffer): Line {
  const object = readObject(text)
  if (!object) return refusedLine(line, 'row_json')
  const order = parse(IngestedOrder, object, '')
  if (!isRefusal(order)) return { line, order: order.value }
  const id = object['orderId']
  return refusedLine(line, order.reason, order.field.slice(1), typeof id === 'string' ? id.slice(0, 128) : '')
}

function refusedLine(line: number, reason: Reason, field?: string, uid = ''): RefusedLine {
  return { line, uid, outcome: 'REJECTED', code: REASONS[reason].code, reason, field: field || undefined }
}

async function* bytesOf(file: string): AsyncGenerator<Buffer> {
  const raw = createReadStream(file)
  const stream: Readable = file.toLowerCase().endsWith('.gz') ? raw.pipe(createGunzip()) : raw
  // A pipe passes on data but not errors.
  if (stream !== raw) raw.on('error', error => stream.destroy(error))
  try {
    yield* stream as AsyncIterable<Buffer>
  } catch (error) {
    const code = codeOf(error)
    if (code === undefined) throw error
    const what = code === 'ENOENT' ? `${file} is not there.` : `${file} cannot be read (${code}).`
    throw new FileError(code === 'ENOENT' ? 'usage' : 'input', what, 'Give an NDJSON file, plain or gzipped.')
  }
}
