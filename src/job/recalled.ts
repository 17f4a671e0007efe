// What a receipt of a single job says when it is asked again: the record of its token as the token is today, or why
// there is none. Finding receipt and token is the asker's; a chunk's outcomes are chunk-outcomes.ts.

import { assert } from '../errors.ts'
import type { BinRange } from '../token/bin.ts'
import { renderPatch, renderPut } from '../token/render.ts'
import type { ShownScheme } from '../token/scheme.ts'
import { reuseTokenOf, type TokenRow } from '../token/token.ts'
import type { Kind } from './catalogue.ts'
import type { FieldReason, ReversalStatus } from './problem.ts'

/** The parts of a receipt that count. */
export interface Remembered {
  kind: Kind
  status: 'SUCCEEDED' | 'FAILED' | 'CANCELLED'
  code: number
  outcome: string | null
  refusal: FieldReason[] | null
  /** Whether what it did outside, in vain, is undone. */
  reversal: 'REQUIRED' | 'COMPLETED' | null
}

export type Recalled =
  | { fields: FieldReason[]; reversalStatus?: ReversalStatus }
  | { success: { code: 200 | 204; record: Record<string, unknown> } }

/** `token`: the row that the receipt names, if it is still there; `range`: its BIN range; `scheme`: its scheme token. */
export function recall(
  receipt: Remembered,
  token: TokenRow | undefined,
  range: BinRange | undefined,
  scheme?: ShownScheme,
): Recalled {
  if (receipt.status === 'CANCELLED')
    return { fields: [{ field: 'body', reason: 'reversed' }], reversalStatus: receipt.reversal ?? 'COMPLETED' }
  if (receipt.refusal !== null)
    return { fields: receipt.refusal, ...(receipt.reversal ? { reversalStatus: receipt.reversal } : {}) }
  if (receipt.kind === 'reversal') return { success: { code: 200, record: { reversal_status: receipt.outcome } } }
  assert(token, 'a token leaves its row behind')
  return { success: { code: receipt.code === 204 ? 204 : 200, record: recordOf(receipt, token, range, scheme) } }
}

function recordOf(
  receipt: Remembered,
  token: TokenRow,
  range: BinRange | undefined,
  scheme: ShownScheme | undefined,
): Record<string, unknown> {
  const id = reuseTokenOf(token)
  if (receipt.kind === 'token-lifecycle') return { id, token_status: receipt.outcome ?? token.status }
  if (token.status === 'DELETED') return { reuse_token: id, token_status: 'DELETED' }
  return receipt.kind === 'token-create' ? renderPut(token, range, scheme) : renderPatch(token, range, scheme)
}
