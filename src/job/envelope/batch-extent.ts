// How much a batch is going to be. Each chunk may say it, signed and yet no part of what makes a chunk or a batch the
// same: a sender that didn't know it at first, or an older release's, sends the same chunk without it.
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
  /** Of the chunks alone: what their sender refused by itself isn't among them. */
  rows: z.int().min(1),
  /** Of the file that they come from, without its folder. */
  name: text(1, 255).optional(),
  sha256: SourceDigest.optional(),
})
export type Extent = z.infer<typeof Extent>

/** The members of a chunk's request that speak of its batch. */
export const extentMembers = {
  extent: Extent.optional(),
  /** This is the highest chunk, of a sender that doesn't know the extent beforehand. */
  last: z.literal(true).optional(),
  /** The sender stops after so many chunks for now, and goes on later. */
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

/** A request without what doesn't belong to its digest. */
export function withoutExtent(request: Record<string, unknown>): Record<string, unknown> {
  const { extent: _, last: __, limit: ___, ...rest } = request
  return rest
}

/** What of its batch a chunk knows. */
export interface KnownExtent {
  chunks: number
  /** `null`: only the number of chunks is known. */
  rows: number | null
  name: string | null
  sha256: string | null
}

/** What a chunk says of its batch; `contradiction` where that can't be. */
export function extentOf({ chunk, extent, last }: SaysExtent): KnownExtent | 'contradiction' | undefined {
  if (extent) {
    const { chunks, rows, name = null, sha256 = null } = extent
    const isHighest = chunk === chunks - 1
    if (chunk >= chunks || (last && !isHighest)) return 'contradiction'
    return { chunks, rows, name, sha256 }
  }
  return last ? { chunks: chunk + 1, rows: null, name: null, sha256: null } : undefined
}

/** Whether one batch can have both extents. */
export function agree(one: Pick<KnownExtent, 'chunks' | 'rows'>, other: Pick<KnownExtent, 'chunks' | 'rows'>): boolean {
  return one.chunks === other.chunks && (one.rows === null || other.rows === null || one.rows === other.rows)
}
