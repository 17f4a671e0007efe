// Reads from a job's request how many records its chunk holds, for the code that bisects a chunk. ../choices.ts decides
// how large a chunk may be.
import { CHUNK } from '../choices.ts'
import type { KindEntry } from '../kind-entry.ts'

/** Returns undefined for a kind that isn't a chunk, and for a malformed request. */
export function chunkSizeOf(kind: Pick<KindEntry, 'recordsIn'> | undefined, request: unknown): number | undefined {
  const size = kind?.recordsIn?.((request ?? {}) as Record<string, unknown>)
  return typeof size === 'number' && Number.isInteger(size) && size >= 1 && size <= CHUNK.recordsMax ? size : undefined
}
