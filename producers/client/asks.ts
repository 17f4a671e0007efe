// The kinds that a client may send, how the request of each is checked, and the text by which two requests with one jti
// count as the same. A missing kind doesn't compile.
import { createHash } from 'node:crypto'
import { type Refusal, refuse } from '../../src/errors.ts'
import { CATALOGUE } from '../../src/job/catalogue.ts'
import { ledgerText, requestText } from '../../src/job/envelope/digest.ts'
import { type Ask, type ClientKind, check } from '../ask.ts'
import { reference } from '../reference.ts'
import { report } from '../report.ts'
import { schemeToken } from '../scheme-token.ts'
import { tokenCreate } from '../token-create.ts'
import { tokenLifecycle } from '../token-lifecycle.ts'
import { tokenUpdate } from '../token-update.ts'

interface AskEntry {
  check: (request: never) => Ask | Refusal
  /** The text by which two requests of the kind count as the same. The vault compares the same text. */
  digestText: (ask: Ask) => string
}

const wholeRequest = ({ kind, request }: Ask) => requestText(kind, request)

const ASKS = {
  'token-create': { check: tokenCreate, digestText: wholeRequest },
  'token-update': { check: tokenUpdate, digestText: wholeRequest },
  'token-lifecycle': { check: tokenLifecycle, digestText: wholeRequest },
  'scheme-token': { check: schemeToken, digestText: wholeRequest },
  'token-batch': { check: request => check('token-batch', request), digestText: withoutBlock },
  'transaction-batch': {
    check: request => check('transaction-batch', request),
    digestText: ({ request }) => ledgerText(request),
  },
  reference: { check: reference, digestText: wholeRequest },
  report: { check: report, digestText: wholeRequest },
} as const satisfies Record<ClientKind, AskEntry>

/**
 * The text of a chunk without its block: a chunk that was encrypted again, or accepted at another time, is still the
 * same chunk.
 */
function withoutBlock({ kind, request }: Ask): string {
  const { accepted_at: _, block: __, ...rest } = request
  return requestText(kind, rest)
}

export function isClientKind(kind: unknown): kind is ClientKind {
  return typeof kind === 'string' && Object.hasOwn(ASKS, kind)
}

/** Checks a request. Refuses a block if the kind has none, and a missing block if the kind needs one. */
export function askOf(kind: string, request: unknown, block?: string): Ask | Refusal {
  if (!isClientKind(kind)) return refuse('field_value', 'body.kind')
  if (CATALOGUE[kind].hasBlock !== (block !== undefined)) {
    return block === undefined ? refuse('field_required', 'body.block') : refuse('field_unknown', 'body.block')
  }
  const ask = (ASKS[kind].check as (request: unknown) => Ask | Refusal)(request)
  return block === undefined || 'refused' in ask ? ask : { ...ask, block }
}

/** SHA-256, in base64url, of the text by which two requests with one jti count as the same. */
export function digestOf(ask: Ask): string {
  return createHash('sha256').update(ASKS[ask.kind].digestText(ask)).digest('base64url')
}
