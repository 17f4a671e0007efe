// Makes the ask of one `token-batch` job of a chunk of records: the records are encrypted as one block that is bound to
// client and jti. The caller cuts the records into chunks.
import type { z } from 'zod'
import type { Refusal } from '../src/errors.ts'
import type { RecordKind } from '../src/job/catalogue.ts'
import type { Extent } from '../src/job/envelope/batch-extent.ts'
import type { BlockForm } from '../src/job/record-columns.ts'
import { CHUNK, type Policy, TokenBatch } from '../src/job/token-batch.ts'
import { blockDigest, sealBlock } from '../src/vault/capture/block.ts'
import type { PublicCaptureKey } from '../src/vault/capture/encrypt.ts'
import { type Ask, check } from './ask.ts'

export interface BatchPlan {
  batchId: string
  recordKind: RecordKind
  tokenScope?: string | undefined
  /** `iat` of the batch's first chunk, seconds since the epoch. */
  acceptedAt: number
  policy?: z.input<typeof Policy> | undefined
  /** Predicts outcomes without changing anything. */
  dryRun?: boolean | undefined
  /** Records per chunk; default: `CHUNK.recordsDefault`. */
  chunkRecords?: number | undefined
  /** The extent of the whole batch, if it is known beforehand. */
  extent?: Extent | undefined
  /** After this many chunks the sender stops for now. */
  limit?: number | undefined
  /** A JWE key of the entity. */
  captureKey: PublicCaptureKey
}

export interface Chunk {
  /** One record per line, as JSON; the lines of a block of another form. */
  lines: string[]
  /** The form of the block; default: rows. */
  form?: BlockForm | undefined
  /** How many records the lines hold; default: one each. */
  records?: number
  /** The chunk's number, from 0. */
  number: number
  /** This is the last chunk. */
  isLast?: boolean
}

/**
 * Makes the ask of one chunk. `clientId`: the client that will sign it. Each call encrypts anew, but the chunk counts
 * as the same.
 */
export async function tokenBatch(
  clientId: string,
  plan: BatchPlan,
  chunk: Chunk,
): Promise<(Ask<'token-batch'> & { jti: string }) | Refusal> {
  const { batchId, recordKind, tokenScope, acceptedAt, policy, dryRun, chunkRecords, captureKey } = plan
  const { extent, limit } = plan
  const jti = `${batchId}-${chunk.number}`
  const block = await sealBlock(chunk.lines.join('\n'), captureKey, { iss: clientId, jti }, chunk.form)
  const ask = check('token-batch', TokenBatch, {
    batch_id: batchId,
    chunk: chunk.number,
    chunk_records: chunkRecords ?? CHUNK.recordsDefault,
    record_kind: recordKind,
    ...(tokenScope !== undefined && { token_scope: tokenScope }),
    accepted_at: acceptedAt,
    ...(policy && { policy }),
    ...(dryRun && { dry_run: true }),
    ...(extent && { extent }),
    ...(chunk.isLast && { last: true }),
    ...(limit !== undefined && { limit }),
    block: {
      sha256: blockDigest(block),
      records: chunk.records ?? chunk.lines.length,
      public_key_alias: captureKey.alias,
    },
  })
  return 'refused' in ask ? ask : { ...ask, block, jti }
}
