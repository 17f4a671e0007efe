// The text that decides whether two requests are the same. A receipt stores a keyed hash of it, which the vault
// computes. And the digest by which a result names what it answers.
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
  return requestText(LEDGER, withoutExtent(linesByDigest(request)))
}

const LEDGER = 'transaction-batch'

/** The request with SHA-256 of the JSON of its lines, and of its columns, in base64url in place of them. */
function linesByDigest(request: Record<string, unknown>): Record<string, unknown> {
  const { transactions, columns, ...rest } = request
  return {
    ...rest,
    ...digestMember('transactions', transactions),
    ...digestMember('columns', columns),
  }
}

function digestMember(name: string, value: unknown): Record<string, string> {
  if (value === undefined) return {}
  return { [name]: createHash('sha256').update(JSON.stringify(value)).digest('base64url') }
}

/** What a job asks for, as its sender signed it. Each text is made once, when it is first needed. */
export interface Asked {
  /** The canonical JSON of `{kind, request}`. The lines of a `transaction-batch` are replaced by their digest. */
  text(): string
  /** The text of a `transaction-batch` by which two chunks are the same (`ledgerText`). */
  ledgerText(): string
  /** SHA-256 of `text`: the member `answers` of a result. It is a hash without a key, of what others may guess. */
  digest(): Buffer | null
}

/** Of a request that has the form of its kind. */
export function askedOf(kind: string, request: Record<string, unknown>): Asked {
  const inShort = made(() => (kind === LEDGER ? linesByDigest(request) : request))
  const text = made(() => requestText(kind, inShort()))
  return {
    text,
    ledgerText: () => requestText(LEDGER, withoutExtent(inShort())),
    digest: made(() => createHash('sha256').update(text()).digest()),
  }
}

/** Of a request that wasn't understood: it may hold a card number in clear, so no hash of it is stored or told. */
export const NOT_UNDERSTOOD: Asked = {
  text: notUnderstood,
  ledgerText: notUnderstood,
  digest: () => null,
}

function notUnderstood(): never {
  throw new Error('broken law: a request is understood before its text is needed')
}

/** The function, called once. */
function made<Value>(make: () => Value): () => Value {
  let found: { value: Value } | undefined
  return () => {
    found ??= { value: make() }
    return found.value
  }
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
