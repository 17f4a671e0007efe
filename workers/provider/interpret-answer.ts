// What an answer to a job's question comes to: what its row is to say, what becomes of the intent, and whether the job is
// told or comes again. Nothing is asked or written here.
import { Fault, type Reason, type Refusal } from '../../src/errors.ts'
import type { ProviderRefusal, Urgency } from '../../src/scheme/provider.ts'
import type { StoredScheme, Told } from '../../src/store/provider/scheme-row.ts'
import type { SchemeCall } from '../../src/token/scheme.ts'
import type { Deps } from '../deps.ts'
import { NotYet } from '../line/work.ts'
import type { Came } from './call-provider.ts'
import { mirror, nothing, unchanged } from './reconcile/apply-answer.ts'
import type { SettledIntent } from './write-answer.ts'

export const LOST_MS = 1_000
/** So often a call may be lost without a trace. */
export const VANISHED_MAX = 10
const AWAY_MS = 2_000

/** Why there is no token, as an intent keeps it. */
export type Denial = ProviderRefusal | 'token_taken' | 'no_answer'

export const SCHEME_REASONS = {
  card_ineligible: 'scheme_card_ineligible',
  card_declined: 'scheme_card_declined',
  token_unknown: 'scheme_token_unknown',
  token_state: 'scheme_token_state',
  request_invalid: 'scheme_request_invalid',
  token_taken: 'scheme_request_invalid',
  no_answer: 'scheme_no_answer',
} as const satisfies Record<Denial, Reason>

export const THIRD_PARTY_REASONS = {
  card_ineligible: 'third_party_card_ineligible',
  card_declined: 'third_party_card_declined',
  token_unknown: 'third_party_request_invalid',
  token_state: 'third_party_request_invalid',
  request_invalid: 'third_party_request_invalid',
  token_taken: 'third_party_token_taken',
  no_answer: 'third_party_card_declined',
} as const satisfies Record<Denial, Reason>

export interface Outcome {
  told: Told
  end: 'changed' | Refusal | Error
  intent: Omit<SettledIntent, 'intentId'>
}

export function outcomeOf(
  row: StoredScheme,
  call: SchemeCall,
  came: Came,
  refusal: (denial: Denial) => Refusal,
  { ring, clock }: Pick<Deps, 'ring' | 'clock'>,
): Outcome {
  switch (came.came) {
    case 'token':
      return { told: mirror(row, came.token, ring), end: 'changed', intent: { state: 'DONE', refusal: null } }
    case 'leaving':
      // Begun anew under another id: this one is answered with that token for as long as they remember it.
      return { told: nothing(row, null), end: new NotYet(LOST_MS), intent: OPEN }
    case 'taken':
      return denied(nothing(row, null), 'token_taken', refusal)
    case 'refused':
      // Of a token that is there: the network doesn't agree with our row, and is asked how things stand.
      return denied(
        call === 'PROVISION' ? nothing(row, came.reason) : unchanged(row, clock(), null),
        came.reason,
        refusal,
      )
    case 'nothing': {
      const isLastWord = (came.once && row.attempts > 1) || (came.vanished && row.attempts > VANISHED_MAX)
      if (isLastWord && call === 'PROVISION') return denied(nothing(row, 'card_declined'), 'no_answer', refusal)
      const dueAt = row.background ? clock() + (came.afterMs ?? LOST_MS) : null
      return { told: unchanged(row, dueAt, null), end: new Fault('scheme_away'), intent: OPEN }
    }
    case 'lost':
      // The loop finds out, unless the next attempt is faster.
      return { told: unchanged(row, clock() + LOST_MS), end: new Fault('scheme_away'), intent: OPEN }
  }
}

const OPEN = { state: 'INTENDED', refusal: null } as const

function denied(told: Told, denial: Denial, refusal: (denial: Denial) => Refusal): Outcome {
  return { told, end: refusal(denial), intent: { state: 'REFUSED', refusal: denial } }
}

/** A batch waits for its network; a single job is tried as often as others. */
export function worstOf(left: readonly Error[], urgency: Urgency): Error | undefined {
  const fault = left.find(error => error instanceof Fault)
  if (fault) return urgency === 'bulk' ? new NotYet(Math.round(AWAY_MS * (0.5 + Math.random()))) : fault
  return left.toSorted((a, b) => (b instanceof NotYet ? b.ms : 0) - (a instanceof NotYet ? a.ms : 0))[0]
}
