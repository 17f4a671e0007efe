// The answer to a repeated single job, made from its receipt: the token's current record, a record that the outcome
// alone gives, or the reason why there is none. The caller reads receipt and token. Chunks have their own file:
// chunk-outcomes.ts.

import { assert, type FieldReason } from '../../errors.ts'
import type { BinRange } from '../../token/bin.ts'
import type { ShownScheme } from '../../token/scheme.ts'
import type { TokenRow } from '../../token/token.ts'
import { type Failure, failureFor, problemCodeOf } from '../problem.ts'
import type { StoredAnswer } from '../stored-answer.ts'

/** The members of a receipt that this file reads. */
interface AnsweredReceipt {
  status: 'SUCCEEDED' | 'FAILED' | 'CANCELLED'
  code: number
  outcome: string | null
  refusal: FieldReason[] | null
  /** Whether failed calls to a provider must be compensated, or were. */
  reversal: 'REQUIRED' | 'COMPLETED' | null
}

export interface Succeeded {
  code: 200 | 204
  record: Record<string, unknown>
}

/** What a single job is answered. */
export type SingleAnswer = Succeeded | { failure: Failure }

/**
 * `retell`: how the kind's answer is built, undefined if the catalogue lacks the kind; `token`: the row that the receipt
 * names, undefined if it is gone; `range`: the token's BIN range; `scheme`: its scheme token.
 */
export function answerFrom(
  receipt: AnsweredReceipt,
  retell: StoredAnswer | undefined,
  token: TokenRow | undefined,
  range: BinRange | undefined,
  scheme?: ShownScheme,
): SingleAnswer {
  if (receipt.status === 'CANCELLED')
    return { failure: failureFor('reversed', 'body', receipt.reversal ?? 'COMPLETED') }
  if (receipt.refusal !== null)
    return {
      failure: {
        status: problemCodeOf(receipt.code),
        fields: receipt.refusal,
        reversalStatus: receipt.reversal ?? 'NONE',
      },
    }
  assert(retell, 'a receipt is of a kind that the catalogue has')
  if (retell.from === 'receipt') return { code: 200, record: retell.record(receipt.outcome) }
  assert(retell.from === 'token', 'outcomes and what a handler keeps are told by whoever reads them')
  assert(token, 'a token leaves its row behind')
  const record = retell.record(token, { outcome: receipt.outcome, range, scheme })
  return { code: receipt.code === 204 ? 204 : 200, record }
}
