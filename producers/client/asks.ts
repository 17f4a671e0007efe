// How the request of each kind that a client may send is checked, and the text by which two requests with one jti count as the
// same. Which kinds there are is handed in (composition.ts).
import { createHash } from 'node:crypto'
import { assert, type Refusal, refuse } from '../../src/errors.ts'
import { requestText } from '../../src/job/envelope/digest.ts'
import type { Ask } from '../ask.ts'

export interface AskEntry {
  check: (request: never) => Ask | Refusal
  /** The text by which two requests of the kind count as the same. The vault compares the same text. */
  digestText: (ask: Ask) => string
  /** The job carries its records as an encrypted block. */
  hasBlock?: true
  /** The request may hold `sequence`, because the kind changes an existing token. */
  sequenced?: true
}

/** By kind. */
export type Asks = ReadonlyMap<string, AskEntry>

export const wholeRequest = ({ kind, request }: Ask) => requestText(kind, request)

/**
 * The text of a chunk without its block: a chunk that was encrypted again, or accepted at another time, is still the
 * same chunk.
 */
export function withoutBlock({ kind, request }: Ask): string {
  const { accepted_at: _, block: __, ...rest } = request
  return requestText(kind, rest)
}

/** Checks a request. Refuses a block if the kind has none, and a missing block if the kind needs one. */
export function askOf(asks: Asks, kind: string, request: unknown, block?: string): Ask | Refusal {
  const found = asks.get(kind)
  if (!found) return refuse('field_value', 'body.kind')
  if ((found.hasBlock === true) !== (block !== undefined)) {
    return block === undefined ? refuse('field_required', 'body.block') : refuse('field_unknown', 'body.block')
  }
  const ask = (found.check as (request: unknown) => Ask | Refusal)(request)
  return block === undefined || 'refused' in ask ? ask : { ...ask, block }
}

/** Whether a checked ask may have a `sequence`. */
export function isSequenced(asks: Asks, ask: Ask): boolean {
  return known(asks, ask).sequenced === true
}

/** SHA-256, in base64url, of the text by which two requests with one jti count as the same. */
export function digestOf(asks: Asks, ask: Ask): string {
  return createHash('sha256').update(known(asks, ask).digestText(ask)).digest('base64url')
}

function known(asks: Asks, { kind }: Ask): AskEntry {
  const found = asks.get(kind)
  assert(found, 'an ask is of a kind that may be sent')
  return found
}
