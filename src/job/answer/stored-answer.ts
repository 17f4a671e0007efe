// How the answer of a succeeded job is given again. Each kind says it in the catalogue. A receipt holds no card data,
// so that the record always shows the token as it is today.
import type { BinRange } from '../../token/bin.ts'
import type { ShownScheme } from '../../token/scheme.ts'
import { reuseTokenOf, type TokenRow } from '../../token/token.ts'

type AnswerRecord = Record<string, unknown>

/** The parts of an answer beside the token's row: the receipt's outcome, the token's BIN range, its scheme token. */
interface AnswerParts {
  outcome: string | null
  range: BinRange | undefined
  scheme: ShownScheme | undefined
}

export interface FromToken {
  from: 'token'
  record(token: TokenRow, beside: AnswerParts): AnswerRecord
}

export type StoredAnswer =
  | FromToken
  /** The receipt's outcome is the whole answer. */
  | { from: 'receipt'; record(outcome: string | null): AnswerRecord }
  /** The outcomes in a chunk's receipt, joined with the tokens; `tells`: which records. */
  | { from: 'outcomes'; tells: 'all' | 'without-effect' }
  /** The kind's handler reads the answer from a table of its own (`retell`). */
  | { from: 'handler' }

/** The token's record; a deleted token has nothing left to show. */
export function fromToken(
  render: (token: TokenRow, range: BinRange | undefined, scheme: ShownScheme | undefined) => AnswerRecord,
): FromToken {
  return {
    from: 'token',
    record: (token, { range, scheme }) =>
      token.status === 'DELETED'
        ? { reuse_token: reuseTokenOf(token), token_status: 'DELETED' }
        : render(token, range, scheme),
  }
}
