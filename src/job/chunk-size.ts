// How many records a chunk holds: what whoever bisects it has to know of it. The records themselves are read elsewhere.
import type { Kind } from './catalogue.ts'

/** Undefined for a kind that is no chunk, or a request without its form. */
export function chunkSizeOf(kind: Kind, request: unknown): number | undefined {
  const { block, transactions } = (request ?? {}) as { block?: { records?: unknown }; transactions?: unknown }
  const size =
    kind === 'token-batch'
      ? block?.records
      : kind === 'transaction-batch' && Array.isArray(transactions)
        ? transactions.length
        : undefined
  return typeof size === 'number' && Number.isInteger(size) && size >= 1 && size <= 1000 ? size : undefined
}
