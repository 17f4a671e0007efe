// The kinds that a client may send, of the core and of the features: what a sender must know of each. The catalogue
// (src/job/composition.ts) has what else a worker knows, and the kinds that belong to system clients.
import { ledgerText } from '../../src/job/envelope/digest.ts'
import { TokenBatch } from '../../src/job/token-batch.ts'
import { TransactionBatch } from '../../src/job/transaction-batch.ts'
import { check } from '../ask.ts'
import { reference } from '../reference.ts'
import { report } from '../report.ts'
import { schemeToken } from '../scheme-token.ts'
import { tokenCreate } from '../token-create.ts'
import { tokenLifecycle } from '../token-lifecycle.ts'
import { tokenUpdate } from '../token-update.ts'
import { type AskEntry, type Asks, wholeRequest, withoutBlock } from './asks.ts'

const BY_KIND = {
  'token-create': {
    check: tokenCreate,
    digestText: wholeRequest,
  },
  'token-update': {
    check: tokenUpdate,
    digestText: wholeRequest,
    sequenced: true,
  },
  'token-lifecycle': {
    check: tokenLifecycle,
    digestText: wholeRequest,
    sequenced: true,
  },
  'scheme-token': {
    check: schemeToken,
    digestText: wholeRequest,
    sequenced: true,
  },
  'token-batch': {
    check: request => check('token-batch', TokenBatch, request),
    digestText: withoutBlock,
    hasBlock: true,
  },
  'transaction-batch': {
    check: request => check('transaction-batch', TransactionBatch, request),
    digestText: ({ request }) => ledgerText(request),
  },
  reference: {
    check: reference,
    digestText: wholeRequest,
  },
  report: {
    check: report,
    digestText: wholeRequest,
  },
} as const satisfies Readonly<Record<string, AskEntry>>

export type ClientKind = keyof typeof BY_KIND

export function isClientKind(kind: unknown): kind is ClientKind {
  return typeof kind === 'string' && Object.hasOwn(BY_KIND, kind)
}

export const ASKS: Asks = new Map<string, AskEntry>(Object.entries(BY_KIND))
