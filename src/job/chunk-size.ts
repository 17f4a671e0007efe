// How many records a chunk holds: what whoever bisects it has to know of it. The records themselves are read elsewhere.
import { CATALOGUE, isKind, type KindEntry } from './catalogue.ts'

/** Undefined for a kind that is no chunk, or a request without its form. */
export function chunkSizeOf(kind: unknown, request: unknown): number | undefined {
  if (!isKind(kind)) return undefined
  const { recordsIn }: KindEntry = CATALOGUE[kind]
  const size = recordsIn?.((request ?? {}) as Record<string, unknown>)
  return typeof size === 'number' && Number.isInteger(size) && size >= 1 && size <= 1000 ? size : undefined
}
