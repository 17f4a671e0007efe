// What a sender must know of each kind that clients send, of the core and of the features. The catalogue (src/job/composition.ts)
// has what else a worker knows, and the kinds that belong to system clients; a test compares the two.
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

type Facts = Pick<AskEntry, 'hasBlock' | 'sequenced'>

function entryOf(check: AskEntry['check'], digestText: AskEntry['digestText'], facts: Facts = {}): AskEntry {
  return { check, digestText, ...facts }
}

/** Two requests are the same if all of them is. */
const entryOfWhole = (check: AskEntry['check'], facts?: Facts) => entryOf(check, wholeRequest, facts)

const BY_KIND = {
  'token-create': entryOfWhole(tokenCreate),
  'token-update': entryOfWhole(tokenUpdate, { sequenced: true }),
  'token-lifecycle': entryOfWhole(tokenLifecycle, { sequenced: true }),
  'scheme-token': entryOfWhole(schemeToken, { sequenced: true }),
  'token-batch': entryOf(request => check('token-batch', TokenBatch, request), withoutBlock, { hasBlock: true }),
  'transaction-batch': entryOf(
    request => check('transaction-batch', TransactionBatch, request),
    ({ request }) => ledgerText(request),
  ),
  reference: entryOfWhole(reference),
  report: entryOfWhole(report),
} satisfies Readonly<Record<string, AskEntry>>

/** The kinds that a client may send; the others belong to system clients. */
export type ClientKind = keyof typeof BY_KIND

export function isClientKind(kind: unknown): kind is ClientKind {
  return typeof kind === 'string' && Object.hasOwn(BY_KIND, kind)
}

export const ASKS: Asks = new Map<string, AskEntry>(Object.entries(BY_KIND))
