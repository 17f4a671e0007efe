// Decides what a provider's answer to a job's call means: what the row will say, what happens to the intent, and
// whether the job gets a result or is repeated. No provider is called here and nothing is written.
import { Fault, type Refusal } from '../../src/errors.ts'
import type { LeasedUpdate, StoredScheme } from '../../src/store/provider/scheme-row.ts'
import type { SchemeCall } from '../../src/token/scheme.ts'
import type { Deps } from '../deps.ts'
import { Postponed } from '../work.ts'
import type { Denial } from './action-rules.ts'
import { applyToken, type SealingRing, unchangedRow, voidRow } from './apply-answer.ts'
import type { CallAnswer } from './call-provider.ts'
import type { AnsweredIntent } from './write-answer.ts'

/** How long to wait before an unknown result is looked for again. */
export const AGAIN_MS = 1_000
/** After this many answers that the token doesn't exist, the call counts as failed for good. */
export const ABSENT_MAX = 10

export interface Interpretation {
  update: LeasedUpdate
  end: 'done' | Refusal | Error
  intent: Omit<AnsweredIntent, 'intentId'>
}

export interface AnsweredCall {
  row: StoredScheme
  call: SchemeCall
  answer: CallAnswer
  refusalOf: (denial: Denial) => Refusal
}

export function interpretAnswer(
  { row, call, answer, refusalOf }: AnsweredCall,
  { ring, clock }: Pick<Deps, 'clock'> & { ring: SealingRing },
): Interpretation {
  const denied = (update: LeasedUpdate, denial: Denial): Interpretation => ({
    update,
    end: refusalOf(denial),
    intent: { state: 'REFUSED', refusal: denial },
  })
  switch (answer.answer) {
    case 'token':
      return { update: applyToken(row, answer.token, ring), end: 'done', intent: { state: 'DONE', refusal: null } }
    case 'duplicate':
      // A third party answers with the deleted token for this id as long as it remembers the id, so the next attempt
      // uses another id.
      if (answer.isRetired) return { update: voidRow(row, null), end: new Postponed(AGAIN_MS), intent: OPEN }
      return denied(voidRow(row, null), 'token_taken')
    case 'refused':
      if (call === 'PROVISION') return denied(voidRow(row, answer.reason), answer.reason)
      // The network's token has another state than the row, so the network is asked for the state at once.
      return denied(unchangedRow(row, clock(), null), answer.reason)
    case 'unproved':
      return denied(unchangedRow(row, null, null), 'unproved')
    case 'no-effect': {
      const isFinal = (answer.isFinalTwice && row.attempts > 1) || (answer.isAbsent && row.attempts > ABSENT_MAX)
      if (isFinal && call === 'PROVISION') return denied(voidRow(row, 'card_declined'), 'no_answer')
      const dueAt = row.background ? clock() + (answer.afterMs ?? AGAIN_MS) : null
      // A call that was held back, or that may simply be repeated, isn't one of the answers that are final if they come again.
      const counts = answer.isFinalTwice || answer.isAbsent
      const counted = counts ? row : { ...row, attempts: Math.max(0, row.attempts - 1) }
      return { update: unchangedRow(counted, dueAt, null), end: new Fault('scheme_away'), intent: OPEN }
    }
    case 'unknown':
      // The loop will find the result, unless the job's next attempt does so earlier.
      return { update: unchangedRow(row, clock() + AGAIN_MS), end: new Fault('scheme_away'), intent: OPEN }
  }
}

const OPEN = { state: 'INTENDED', refusal: null } as const
