// The kinds that a client may send, of the core and of the features. A missing kind doesn't compile.
import { KINDS, type Kind } from '../../src/job/composition.ts'
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

/** The kinds that a client may send; the others belong to system clients. */
export type ClientKind = { [K in Kind]: (typeof KINDS)[K]['systemOnly'] extends true ? never : K }[Kind]

const BY_KIND: Readonly<Record<ClientKind, AskEntry>> = {
  'token-create': { entry: KINDS['token-create'], check: tokenCreate, digestText: wholeRequest },
  'token-update': { entry: KINDS['token-update'], check: tokenUpdate, digestText: wholeRequest },
  'token-lifecycle': { entry: KINDS['token-lifecycle'], check: tokenLifecycle, digestText: wholeRequest },
  'scheme-token': { entry: KINDS['scheme-token'], check: schemeToken, digestText: wholeRequest },
  'token-batch': {
    entry: KINDS['token-batch'],
    check: request => check('token-batch', TokenBatch, request),
    digestText: withoutBlock,
  },
  'transaction-batch': {
    entry: KINDS['transaction-batch'],
    check: request => check('transaction-batch', TransactionBatch, request),
    digestText: ({ request }) => ledgerText(request),
  },
  reference: { entry: KINDS.reference, check: reference, digestText: wholeRequest },
  report: { entry: KINDS.report, check: report, digestText: wholeRequest },
}

export function isClientKind(kind: unknown): kind is ClientKind {
  return typeof kind === 'string' && Object.hasOwn(BY_KIND, kind)
}

export const ASKS: Asks = new Map(Object.entries(BY_KIND))
