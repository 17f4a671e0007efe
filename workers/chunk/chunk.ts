// A chunk's block, opened and read: every record either has its shape or is refused alone, by name. What a record
// then does to a token is not decided here.
import { isUtf8 } from 'node:buffer'
import { isRefusal, type Reason, type Refusal, refuse } from '../../src/errors.ts'
import type { RecordKind } from '../../src/job/catalogue.ts'
import { clearNumbersOf, couldHoldNumber, nameRefusal } from '../../src/job/own-card.ts'
import { fieldsOf } from '../../src/job/problem.ts'
import { parse } from '../../src/job/refusal.ts'
import {
  CHUNK,
  type CreateRecord,
  RECORD_REQUESTS,
  RecordHead,
  type TokenBatch,
  type UpdateRecord,
} from '../../src/job/token-batch.ts'
import type { TokenLifecycle } from '../../src/job/token-lifecycle.ts'
import { openBlock } from '../../src/vault/block.ts'
import { captureKeyFor } from '../card/open-capture.ts'
import type { Deps } from '../deps.ts'
import type { Work } from '../line/work.ts'

export type RecordRequest = CreateRecord | UpdateRecord | TokenLifecycle

export type ChunkRecord = { line: number; reference: string | undefined } & (
  | { request: RecordRequest }
  | { reason: Reason; field: string | undefined }
)

/** The block's plaintext: NDJSON, one record a line. */
export async function openChunk(work: Work<TokenBatch>, deps: Pick<Deps, 'directory'>): Promise<Buffer | Refusal> {
  const { request, claims, client, block = '' } = work
  const key = await captureKeyFor(request.block.public_key_alias, client, deps.directory)
  if (isRefusal(key)) return refuse('alias_unknown', 'body.request.block.public_key_alias')
  const opened = await openBlock(block, key, { iss: claims.iss, jti: claims.jti })
  return isRefusal(opened) ? refuse('block_undecryptable', 'body.request.block') : opened
}

const NEWLINE = 0x0a

/** One entry per line of the block; a refusal where their number isn't the one stated. */
export function readRecords(plaintext: Buffer, { record_kind, block }: TokenBatch): ChunkRecord[] | Refusal {
  if (plaintext.length > CHUNK.bytesMax) return refuse('block_records', 'body.request.block')
  const records: ChunkRecord[] = []
  for (let start = 0; start < plaintext.length; ) {
    let end = plaintext.indexOf(NEWLINE, start)
    if (end === -1) end = plaintext.length
    if (end > start) {
      if (records.length === block.records) return refuse('block_records', 'body.request.block')
      records.push(readRecord(plaintext, start, end, record_kind, records.length))
    }
    start = end + 1
  }
  return records.length === block.records ? records : refuse('block_records', 'body.request.block')
}

function readRecord(plaintext: Buffer, start: number, end: number, kind: RecordKind, index: number): ChunkRecord {
  // A record whose line can't be read is named by its place in the chunk.
  const nameless = { line: index + 1, reference: undefined }
  if (end - start > CHUNK.lineBytesMax) return { ...nameless, reason: 'record_too_large', field: undefined }
  const text = plaintext.subarray(start, end)
  if (!isUtf8(text)) return { ...nameless, reason: 'row_utf8', field: undefined }
  let value: unknown
  try {
    value = JSON.parse(text.toString('utf8'))
  } catch {
    return { ...nameless, reason: 'row_json', field: undefined }
  }
  const head = parse(RecordHead, value, 'body')
  if (isRefusal(head)) return { ...nameless, ...lineOf(value), ...reasonOf(head) }
  const { line, reference, rejected } = head.value
  // As it was sent: a schema's copy has lost what can't be copied.
  const { request } = value as { request?: unknown }
  const named = couldHoldNumber(reference) && nameRefusal({ reference }, clearNumbersOf(request))
  if (named) return { line, reference: undefined, ...reasonOf(named) }
  if (rejected) return { line, reference, reason: rejected.reason as Reason, field: undefined }
  const parsed = parse<RecordRequest>(RECORD_REQUESTS[kind], request ?? {}, 'body')
  return isRefusal(parsed) ? { line, reference, ...reasonOf(parsed) } : { line, reference, request: parsed.value }
}

function lineOf(value: unknown): { line?: number } {
  const line = (value as { line?: unknown } | null)?.line
  return RecordHead.shape.line.safeParse(line).success ? { line: line as number } : {}
}

export function reasonOf(refusal: Refusal): { reason: Reason; field: string | undefined } {
  const first = fieldsOf(refusal)[0]
  return { reason: first?.reason ?? 'field_value', field: first?.field }
}
