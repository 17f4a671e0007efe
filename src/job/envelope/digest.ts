// The text that decides whether two requests are the same. A receipt stores a keyed hash of it, which the vault
// computes.
import { createHash } from 'node:crypto'
import canonicalize from 'canonicalize'
import { withoutExtent } from './batch-extent.ts'

/** The canonical JSON (RFC 8785) of `{kind, request}`. */
export function requestText(kind: string, request: unknown): string {
  return canonical({ kind, request })
}

/** The text of a request with a card, by which it is the same however the card was encrypted. `card`: what the card says. */
export function contentText(kind: string, request: Record<string, unknown>, card: string): string {
  const { encrypted_card: _, public_key_alias: __, ...rest } = request
  return canonical({ kind, request: rest, card })
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
 * The text of a chunk of transactions. Its lines are replaced by the digest of their text, and so are its columns:
 * canonicalising a thousand records takes longer than storing them. So the same lines in another form are another chunk.
 */
export function ledgerText(request: Record<string, unknown>): string {
  const { transactions, columns, ...rest } = withoutExtent(request)
  const digest = (value: unknown) => createHash('sha256').update(JSON.stringify(value)).digest('base64url')
  const inColumns = columns === undefined ? {} : { columns: digest(columns) }
  return requestText('transaction-batch', { ...rest, ...inColumns, transactions: digest(transactions) })
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
