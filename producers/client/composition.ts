// What a sender must know of each kind that clients send, of the core and of the features. A missing kind doesn't compile. The catalogue
// (src/job/composition.ts) has what else a worker knows, and the kinds that belong to system clients.
import type { ClientKind } from '../../src/job/choices.ts'
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

const BY_KIND: Readonly<Record<ClientKind, AskEntry>> = {
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
}

export function isClientKind(kind: unknown): kind is ClientKind {
  return typeof kind === 'string' && Object.hasOwn(BY_KIND, kind)
}

export const ASKS: Asks = new Map(Object.entries(BY_KIND))
