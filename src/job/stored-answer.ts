// How the answer of a job that succeeded is told again. Each kind says it in the catalogue; the receipt keeps no card
// data, so that a token's record is always the one of today.
import type { BinRange } from '../token/bin.ts'
import type { ShownScheme } from '../token/scheme.ts'
import { reuseTokenOf, type TokenRow } from '../token/token.ts'

type AnswerRecord = Record<string, unknown>

/** What stands beside the token's row: its receipt's outcome, its BIN range, its scheme token. */
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
  /** The receipt's outcome says it all. */
  | { from: 'receipt'; record(outcome: string | null): AnswerRecord }
  /** The outcomes that a chunk's receipt keeps, joined with the tokens; `tells`: of which records. */
  | { from: 'outcomes'; tells: 'all' | 'without-effect' }
  /** The kind's handler reads it from a table of its own: its `retell`. */
  | { from: 'handler' }

/** The token's record; of a deleted token nothing is left to show. */
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
