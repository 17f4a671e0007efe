// What makes two requests the same: the text whose keyed hash a receipt stores. The vault computes the hash.
import { createHash } from 'node:crypto'
import canonicalize from 'canonicalize'
import type { Kind } from '../catalogue.ts'
import { withoutExtent } from './batch-extent.ts'

/** RFC 8785 form of `{kind, request}`. */
export function requestText(kind: Kind, request: unknown): string {
  return canonical({ kind, request })
}

/**
 * A batch's chunk: `accepted_at` and `block` are left out and the records replace them, so that a chunk that was
 * encrypted again is still the same chunk. What a chunk says of its batch's extent is left out, too.
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
 * A chunk of the ledger. Its lines count by the digest of their text: canonicalising a thousand records takes longer
 * than storing them.
 */
export function ledgerText(request: Record<string, unknown>): string {
  const { transactions, ...rest } = withoutExtent(request)
  const written = createHash('sha256').update(JSON.stringify(transactions)).digest('base64url')
  return requestText('transaction-batch', { ...rest, transactions: written })
}

function canonical(value: unknown): string {
  const text = canonicalize(value)
  if (text === undefined) throw new Error('broken law: a request has a canonical form')
  return text
}

/** SHA-256 of a JWS: a reversal names the envelope by it. */
export function envelopeDigest(jws: string): Buffer {
  return createHash('sha256').update(jws).digest()
}
