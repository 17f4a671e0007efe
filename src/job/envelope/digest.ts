// The text that decides whether two requests are the same. A receipt stores a keyed hash of it, which the vault
// computes.
import { createHash } from 'node:crypto'
import canonicalize from 'canonicalize'
import type { Kind } from '../catalogue.ts'
import { withoutExtent } from './batch-extent.ts'

/** The canonical JSON (RFC 8785) of `{kind, request}`. */
export function requestText(kind: Kind, request: unknown): string {
  return canonical({ kind, request })
}

/**
 * The text of a batch's chunk. The records replace `accepted_at` and `block`, so that a chunk that was encrypted again
 * is still the same chunk. The batch's extent is left out, too.
 */
export function chunkText(request: Record<string, unknown>, records: Buffer): string {
  const { accepted_at: _, block: __, ...rest } = withoutExtent(request)
  return canonical({
    kind: 'token-batch',
    request: rest,
    records: createHash('sha256').update(records).digest('base64url'),
  })
}

/**
 * The text of a chunk of transactions. The transactions are replaced by one digest of their JSON, in which the order of
 * members counts: canonicalising a thousand records takes longer than storing them.
 */
export function ledgerText(request: Record<string, unknown>): string {
  const { transactions, ...rest } = withoutExtent(request)
  const written = createHash('sha256').update(JSON.stringify(transactions)).digest('base64url')
  return requestText('transaction-batch', { ...rest, transactions: written })
}

/** The canonical JSON (RFC 8785) of a value. */
export function canonical(value: unknown): string {
  const text = canonicalize(value)
  if (text === undefined) throw new Error('broken law: the value has a canonical form')
  return text
}

/** SHA-256 of a JWS. A reversal names the envelope by this digest. */
export function envelopeDigest(jws: string): Buffer {
  return createHash('sha256').update(jws).digest()
}
