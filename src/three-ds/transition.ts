// The states of an authentication and their transitions, as one total table. The first end is final: a message that is
// late, repeated or out of order changes nothing, and each of these cases has a name.
import type { FinalOutcome, Outcome } from './outcome.ts'

/** OPEN: begun, without an answer of the directory server. The other states are outcomes. Only C isn't final. */
export const STATES = ['OPEN', 'C', 'Y', 'A', 'N', 'U', 'R'] as const
export type State = 'OPEN' | Outcome

/**
 * answer: the directory server has answered the request. failed: it will not answer (it refused, or its answer was
 * malformed). result: a challenge has ended, reported by the directory server or by a JWT. expired: no end came in
 * time.
 */
export const EVENTS = [
  'answer-Y',
  'answer-A',
  'answer-N',
  'answer-U',
  'answer-R',
  'answer-C',
  'failed',
  'result-Y',
  'result-A',
  'result-N',
  'result-U',
  'result-R',
  'expired',
] as const
export type Event = (typeof EVENTS)[number]

/**
 * same: this was reported before. late: the authentication has ended otherwise. early: no challenge was begun that this
 * could end.
 */
export type WhyIgnored = 'same' | 'late' | 'early'
type Transition = { next: State } | { next?: undefined; ignored: WhyIgnored }

type Cell = State | WhyIgnored

/** The row of a final state: its own event again is `same`, any other is `late`. */
const final = (end: FinalOutcome): Record<Event, Cell> => ({
  'answer-Y': 'late',
  'answer-A': 'late',
  'answer-N': 'late',
  'answer-U': 'late',
  'answer-R': 'late',
  'answer-C': 'late',
  failed: end === 'U' ? 'same' : 'late',
  'result-Y': 'late',
  'result-A': 'late',
  'result-N': 'late',
  'result-U': 'late',
  'result-R': 'late',
  // A time-out after the end changes nothing.
  expired: 'same',
  [`answer-${end}`]: 'same',
  [`result-${end}`]: 'same',
})

const TRANSITIONS = {
  OPEN: {
    'answer-Y': 'Y',
    'answer-A': 'A',
    'answer-N': 'N',
    'answer-U': 'U',
    'answer-R': 'R',
    'answer-C': 'C',
    failed: 'U',
    'result-Y': 'early',
    'result-A': 'early',
    'result-N': 'early',
    'result-U': 'early',
    'result-R': 'early',
    expired: 'U',
  },
  C: {
    'answer-Y': 'late',
    'answer-A': 'late',
    'answer-N': 'late',
    'answer-U': 'late',
    'answer-R': 'late',
    'answer-C': 'same',
    failed: 'late',
    'result-Y': 'Y',
    'result-A': 'A',
    'result-N': 'N',
    'result-U': 'U',
    'result-R': 'R',
    expired: 'U',
  },
  Y: final('Y'),
  A: final('A'),
  N: final('N'),
  U: final('U'),
  R: final('R'),
} as const satisfies Record<State, Record<Event, Cell>>

export function follow(state: State, event: Event): Transition {
  const cell: Cell = TRANSITIONS[state][event]
  return cell === 'same' || cell === 'late' || cell === 'early' ? { ignored: cell } : { next: cell }
}

export function isFinal(state: State): state is FinalOutcome {
  return state !== 'OPEN' && state !== 'C'
}
