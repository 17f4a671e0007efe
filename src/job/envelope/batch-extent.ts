// The extent of a batch: how many chunks and rows it will have. Each chunk may state it. The statement is signed, but
// isn't part of the digest of a chunk or of the layout of a batch: so a sender that didn't know the extent at first can
// send the same chunk without it.
import { z } from 'zod'
import { text } from './text.ts'

/** Chunks are numbered from 0. */
export const CHUNK_NUMBER_MAX = 10_000_000

export const SourceDigest = z.string().regex(/^[0-9a-f]{64}$/)

export const Extent = z.strictObject({
  chunks: z
    .int()
    .min(1)
    .max(CHUNK_NUMBER_MAX + 1),
  /** Rows in the chunks. Rows that the sender itself refused don't count. */
  rows: z.int().min(1),
  /** The source file's name, without its folder. */
  name: text(1, 255).optional(),
  sha256: SourceDigest.optional(),
})
export type Extent = z.infer<typeof Extent>

/** The members of a chunk's request that describe its batch. */
export const extentMembers = {
  extent: Extent.optional(),
  /** Marks the chunk with the highest number; for senders that don't know the extent beforehand. */
  last: z.literal(true).optional(),
  /** The sender stops after this many chunks for now, and sends the others in a later run. */
  limit: z
    .int()
    .min(1)
    .max(CHUNK_NUMBER_MAX + 1)
    .optional(),
}

export interface SaysExtent {
  chunk: number
  extent?: Extent | undefined
  last?: true | undefined
  limit?: number | undefined
}

/** The request without the members that its digest leaves out. */
export function withoutExtent(request: Record<string, unknown>): Record<string, unknown> {
  const { extent: _, last: __, limit: ___, ...rest } = request
  return rest
}

/** What a chunk says of its batch, with defaults filled in. */
export interface KnownExtent {
  chunks: number
  /** `null`: only the number of chunks is known. */
  rows: number | null
  name: string | null
  sha256: string | null
}

/**
 * The extent that a chunk states; undefined if it states none; `contradiction` if its members contradict each other.
 */
export function extentOf({ chunk, extent, last }: SaysExtent): KnownExtent | 'contradiction' | undefined {
  if (extent) {
    const { chunks, rows, name = null, sha256 = null } = extent
    const isHighest = chunk === chunks - 1
    if (chunk >= chunks || (last && !isHighest)) return 'contradiction'
    return { chunks, rows, name, sha256 }
  }
  return last ? { chunks: chunk + 1, rows: null, name: null, sha256: null } : undefined
}

/** Whether both extents can be those of one batch. */
export function agree(one: Pick<KnownExtent, 'chunks' | 'rows'>, other: Pick<KnownExtent, 'chunks' | 'rows'>): boolean {
  return one.chunks === other.chunks && (one.rows === null || other.rows === null || one.rows === other.rows)
}
