// The states of an authentication and their transitions, as one total table. The first end holds: a message that is
// late, doubled or out of order changes nothing, and has a name of its own.
import type { FinalOutcome, Outcome } from './outcome.ts'

/** OPEN: begun, with no answer of the directory server yet. The others are outcomes; only C has a next state. */
export const STATES = ['OPEN', 'C', 'Y', 'A', 'N', 'U', 'R'] as const
export type State = 'OPEN' | Outcome

/**
 * answer: the directory server's to the request. failed: it will never answer it (refused, malformed). result: how a
 * challenge ended, from server to server or by a JWT. expired: nobody came back in time.
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

/** same: said before. late: it has ended otherwise. early: nothing was asked yet that this could be the end of. */
export type WhyIgnored = 'same' | 'late' | 'early'
type Transition = { next: State } | { next?: undefined; ignored: WhyIgnored }

type Cell = State | WhyIgnored

/** A final state: its own event again is the same, any other comes late. */
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
  // Nothing is lost by a clock that goes off after the end.
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
