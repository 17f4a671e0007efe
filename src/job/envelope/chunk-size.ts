// How many records a chunk holds, for the code that bisects a chunk. Parsing the records is elsewhere.
import { CATALOGUE, isKind, type KindEntry } from '../catalogue.ts'

/** Undefined for a kind that is no chunk, and for a malformed request. */
export function chunkSizeOf(kind: unknown, request: unknown): number | undefined {
  if (!isKind(kind)) return undefined
  const { recordsIn }: KindEntry = CATALOGUE[kind]
  const size = recordsIn?.((request ?? {}) as Record<string, unknown>)
  return typeof size === 'number' && Number.isInteger(size) && size >= 1 && size <= 1000 ? size : undefined
}
