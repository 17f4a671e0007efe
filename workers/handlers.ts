// The table of handlers: every kind stands in it, or it doesn't compile. `null` is a kind that this release refuses.
import type { Kind } from '../src/job/catalogue.ts'
import type { Handler } from './line/work.ts'
import { report } from './report.ts'
import { reversal } from './reversal.ts'
import { schemeToken } from './scheme-token.ts'
import { tokenBatch } from './token-batch.ts'
import { tokenCreate } from './token-create.ts'
import { tokenLifecycle } from './token-lifecycle.ts'
import { tokenUpdate } from './token-update.ts'
import { transactionBatch } from './transaction-batch.ts'

const HANDLERS = {
  'token-create': tokenCreate,
  'token-update': tokenUpdate,
  'token-lifecycle': tokenLifecycle,
  'token-batch': tokenBatch,
  'scheme-token': schemeToken,
  'transaction-batch': transactionBatch,
  report,
  reversal,
} as const satisfies Record<Kind, unknown>

export function handlerOf(kind: Kind): Handler<unknown, unknown, unknown> | null {
  return HANDLERS[kind] as Handler<unknown, unknown, unknown> | null
}
