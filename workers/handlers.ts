// The table of handlers. A kind without an entry doesn't compile. `null`: this release refuses the kind.
import type { CATALOGUE, Kind } from '../src/job/catalogue.ts'
import { act } from './act.ts'
import { type Complete, complete, type Handler, type Retells } from './line/work.ts'
import { manifestTotal } from './manifest-total.ts'
import { reference } from './reference.ts'
import { report } from './report.ts'
import { reversal } from './reversal.ts'
import { schemeToken } from './scheme-token.ts'
import { tokenBatch } from './token-batch.ts'
import { tokenCreate } from './token-create.ts'
import { tokenLifecycle } from './token-lifecycle.ts'
import { tokenUpdate } from './token-update.ts'
import { transactionBatch } from './transaction-batch.ts'
import { webhook } from './webhook.ts'

type AnyHandler = Handler<unknown, unknown, unknown>

/** A kind whose stored answers the handler makes (`from: 'handler'` in the catalogue) must have `retell`. */
type HandlerFor<K extends Kind> = (typeof CATALOGUE)[K]['retell'] extends { from: 'handler' }
  ? AnyHandler & Retells
  : AnyHandler

const HANDLERS: { [K in Kind]: HandlerFor<K> | null } = {
  'token-create': tokenCreate,
  'token-update': tokenUpdate,
  'token-lifecycle': tokenLifecycle,
  'token-batch': tokenBatch,
  'scheme-token': schemeToken,
  'transaction-batch': transactionBatch,
  'manifest-total': manifestTotal,
  act,
  reference,
  report,
  reversal,
  webhook,
}

export function handlerOf(kind: Kind): Complete<unknown, unknown, unknown> | null {
  const handler = HANDLERS[kind]
  return handler && complete(handler)
}
