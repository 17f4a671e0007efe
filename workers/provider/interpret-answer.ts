// What a provider's answer to a job's call means: what its row is to say, what becomes of the intent, and whether the job
// gets a result or comes again. No provider is called here and nothing is written.
import { Fault, type Refusal } from '../../src/errors.ts'
import type { LeasedUpdate, StoredScheme } from '../../src/store/provider/scheme-row.ts'
import type { SchemeCall } from '../../src/token/scheme.ts'
import type { KeyRing } from '../../src/vault/key-ring.ts'
import type { Deps } from '../deps.ts'
import { Postponed } from '../line/work.ts'
import type { Denial } from './action-rules.ts'
import type { CallAnswer } from './call-provider.ts'
import { applyToken, unchangedRow, voidRow } from './reconcile/apply-answer.ts'
import type { AnsweredIntent } from './write-answer.ts'

/** Until somebody looks again at what isn't known yet. */
export const AGAIN_MS = 1_000
/** A provider may answer so often that a call left no token. */
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
  { ring, clock }: Pick<Deps, 'clock'> & { ring: Pick<KeyRing, 'sealNetworkToken'> },
): Interpretation {
  const denied = (update: LeasedUpdate, denial: Denial): Interpretation => ({
    ...{ update, end: refusalOf(denial), intent: { state: 'REFUSED', refusal: denial } },
  })
  switch (answer.answer) {
    case 'token':
      return { update: applyToken(row, answer.token, ring), end: 'done', intent: { state: 'DONE', refusal: null } }
    case 'duplicate':
      // A third party answers this id with the deleted token for as long as it remembers the id: the next attempt uses
      // another one.
      if (answer.isRetired) return { update: voidRow(row, null), end: new Postponed(AGAIN_MS), intent: OPEN }
      return denied(voidRow(row, null), 'token_taken')
    case 'refused':
      if (call === 'PROVISION') return denied(voidRow(row, answer.reason), answer.reason)
      // The network has another state of that token than the row: it is asked for the state at once.
      return denied(unchangedRow(row, clock(), null), answer.reason)
    case 'no-effect': {
      const isFinal = (answer.isFinalTwice && row.attempts > 1) || (answer.isAbsent && row.attempts > ABSENT_MAX)
      if (isFinal && call === 'PROVISION') return denied(voidRow(row, 'card_declined'), 'no_answer')
      const dueAt = row.background ? clock() + (answer.afterMs ?? AGAIN_MS) : null
      return { update: unchangedRow(row, dueAt, null), end: new Fault('scheme_away'), intent: OPEN }
    }
    case 'unknown':
      // The loop finds the outcome, unless the next attempt of the job is faster.
      return { update: unchangedRow(row, clock() + AGAIN_MS), end: new Fault('scheme_away'), intent: OPEN }
  }
}

const OPEN = { state: 'INTENDED', refusal: null } as const
