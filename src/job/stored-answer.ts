// How the answer of a succeeded job is built when the job is repeated. The catalogue holds one such rule per kind. A
// receipt holds no card data, so a repeated answer takes them from the token's present row.
import type { BinRange } from '../token/bin.ts'
import type { ShownScheme } from '../token/scheme.ts'
import { reuseTokenOf, type TokenRow } from '../token/token.ts'

type AnswerRecord = Record<string, unknown>

/** What an answer shows beside the token's row: the receipt's outcome, the token's BIN range, its scheme token. */
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
  /** The answer is made from the receipt's outcome alone. */
  | { from: 'receipt'; record(outcome: string | null): AnswerRecord }
  /** The outcomes in a chunk's receipt, joined with the tokens. `tells`: which records the answer lists. */
  | { from: 'outcomes'; tells: 'all' | 'without-effect' }
  /** The kind's handler reads the answer from a table of its own (`retell`). */
  | { from: 'handler' }

/** Shows the token's record. If the token is deleted, only its id and status are shown. */
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

/** Repeats the outcome that the receipt holds, as this member. */
export function fromOutcome(member: string) {
  return { from: 'receipt', record: (outcome: string | null): AnswerRecord => ({ [member]: outcome }) } as const
}
