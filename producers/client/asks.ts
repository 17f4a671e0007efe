// Every kind that a client may ask for, and who checks it. A kind without a producer doesn't compile.
import { type Refusal, refuse } from '../../src/errors.ts'
import { CATALOGUE } from '../../src/job/catalogue.ts'
import { type Ask, type ClientKind, check } from '../ask.ts'
import { report } from '../report.ts'
import { schemeToken } from '../scheme-token.ts'
import { tokenCreate } from '../token-create.ts'
import { tokenLifecycle } from '../token-lifecycle.ts'
import { tokenUpdate } from '../token-update.ts'

type Checker = (request: never) => Ask | Refusal

const ASKS = {
  'token-create': tokenCreate,
  'token-update': tokenUpdate,
  'token-lifecycle': tokenLifecycle,
  'scheme-token': schemeToken,
  'token-batch': request => check('token-batch', request),
  'transaction-batch': request => check('transaction-batch', request),
  report,
} as const satisfies Record<ClientKind, Checker>

export function isClientKind(kind: unknown): kind is ClientKind {
  return typeof kind === 'string' && Object.hasOwn(ASKS, kind)
}

/** A kind that has a block comes with it, and no other does. */
export function askOf(kind: string, request: unknown, block?: string): Ask | Refusal {
  if (!isClientKind(kind)) return refuse('field_value', 'body.kind')
  if (CATALOGUE[kind].hasBlock !== (block !== undefined)) {
    return block === undefined ? refuse('field_required', 'body.block') : refuse('field_unknown', 'body.block')
  }
  const ask = (ASKS[kind] as (request: unknown) => Ask | Refusal)(request)
  return block === undefined || 'refused' in ask ? ask : { ...ask, block }
}
