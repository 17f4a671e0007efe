// Cuts records into chunks and makes of each the ask of one `token-batch` job: the records encrypted as one block that
// is bound to client and jti. Which records there are, and what becomes of them, is the caller's and the worker's.
import type { z } from 'zod'
import { assert, type Reason, type Refusal } from '../src/errors.ts'
import type { RecordKind } from '../src/job/catalogue.ts'
import { CHUNK, type Policy } from '../src/job/token-batch.ts'
import { blockDigest, sealBlock } from '../src/vault/block.ts'
import type { PublicCaptureKey } from '../src/vault/encrypt.ts'
import { type Ask, check } from './ask.ts'

export interface BatchRecord {
  /** Physical line of the source, from 1. */
  line: number
  reference?: string | undefined
  request?: Record<string, unknown>
  /** A row that its reader refused already: counted, not tried. */
  rejected?: { reason: Reason }
}

export interface BatchPlan {
  batchId: string
  recordKind: RecordKind
  tokenScope?: string | undefined
  /** `iat` of the batch's first chunk, seconds since the epoch. */
  acceptedAt: number
  policy?: z.input<typeof Policy> | undefined
  /** Predicts, changes nothing. */
  dryRun?: boolean | undefined
  /** Records per chunk (500). */
  chunkRecords?: number | undefined
  /** A JWE key of the entity. */
  captureKey: PublicCaptureKey
}

/** Plaintext of a chunk: base64 makes 4/3 of it, and a block of 4 MiB also holds a header. */
const CHUNK_BYTES_MAX = CHUNK.bytesMax - 65_536

/** NDJSON lines of one chunk after the other, in order; the same records are always cut alike. */
export async function* cutRecords(
  records: AsyncIterable<BatchRecord> | Iterable<BatchRecord>,
  chunkRecords: number = CHUNK.recordsDefault,
): AsyncGenerator<string[], void, void> {
  assert(chunkRecords >= 1 && chunkRecords <= CHUNK.recordsMax, 'a chunk holds 1 to 1,000 records')
  let lines: string[] = []
  let bytes = 0
  for await (const record of records) {
    const line = lineOf(record)
    const size = Buffer.byteLength(line) + 1
    if (lines.length === chunkRecords || bytes + size > CHUNK_BYTES_MAX) {
      yield lines
      lines = []
      bytes = 0
    }
    lines.push(line)
    bytes += size
  }
  if (lines.length > 0) yield lines
}

function lineOf(record: BatchRecord): string {
  const line = JSON.stringify(record)
  if (Buffer.byteLength(line) <= CHUNK.lineBytesMax) return line
  const { line: at, reference } = record
  return JSON.stringify({ line: at, reference, rejected: { reason: 'record_too_large' satisfies Reason } })
}

export interface Chunk {
  lines: string[]
  /** From 0, in order. */
  number: number
}

/** `clientId` is the client that will sign it. Encrypts anew at each call; it is the same chunk all the same. */
export async function tokenBatch(
  clientId: string,
  plan: BatchPlan,
  chunk: Chunk,
): Promise<(Ask & { jti: string }) | Refusal> {
  const { batchId, recordKind, tokenScope, acceptedAt, policy, dryRun, chunkRecords, captureKey } = plan
  const jti = `${batchId}-${chunk.number}`
  const block = await sealBlock(chunk.lines.join('\n'), captureKey, { iss: clientId, jti })
  const ask = check('token-batch', {
    batch_id: batchId,
    chunk: chunk.number,
    chunk_records: chunkRecords ?? CHUNK.recordsDefault,
    record_kind: recordKind,
    ...(tokenScope !== undefined && { token_scope: tokenScope }),
    accepted_at: acceptedAt,
    ...(policy && { policy }),
    ...(dryRun && { dry_run: true }),
    block: { sha256: blockDigest(block), records: chunk.lines.length, public_key_alias: captureKey.alias },
  })
  return 'refused' in ask ? ask : { ...ask, block, jti }
}
