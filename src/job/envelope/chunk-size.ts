// Reads from a job's request how many records its chunk holds, for the code that bisects a chunk. ../choices.ts decides
// how large a chunk may be.
import { CATALOGUE, isKind, type KindEntry } from '../catalogue.ts'
import { CHUNK } from '../choices.ts'

/** Returns undefined for a kind that isn't a chunk, and for a malformed request. */
export function chunkSizeOf(kind: unknown, request: unknown): number | undefined {
  if (!isKind(kind)) return undefined
  const { recordsIn }: KindEntry = CATALOGUE[kind]
  const size = recordsIn?.((request ?? {}) as Record<string, unknown>)
  return typeof size === 'number' && Number.isInteger(size) && size >= 1 && size <= CHUNK.recordsMax ? size : undefined
}
