// A circuit breaker, as pure functions over a value: after many failures in a row a network gets no calls for a while,
// then one probe finds out whether the network is back. The caller decides which calls count as failures.

export type BreakerState = 'closed' | 'open' | 'half_open'
/** `elapsed`: the rest is over and a call asks for admission. */
export type BreakerEvent = 'success' | 'failure' | 'elapsed'

type Step = 'stay' | 'clear' | 'count' | 'probe' | 'close' | 'reopen'

/**
 * The next state of a breaker, by its state and the event. While a breaker is open, late answers to calls that began
 * before change nothing.
 */
export const BREAKER = {
  closed: { success: 'clear', failure: 'count', elapsed: 'stay' },
  open: { success: 'stay', failure: 'stay', elapsed: 'probe' },
  half_open: { success: 'close', failure: 'reopen', elapsed: 'stay' },
} as const satisfies Record<BreakerState, Record<BreakerEvent, Step>>

export interface Breaker {
  state: BreakerState
  /** Failures in a row while the breaker is closed. */
  failures: number
  /** How long the next open state lasts, ms. */
  restMs: number
  /** Until when the breaker stays open, in ms since the epoch. */
  restsUntil: number
}

export interface BreakerLimits {
  failuresMax: number
  /** The length of the first open state, ms. It doubles with every probe that fails, up to `restMsMax`. */
  restMs: number
  restMsMax: number
}

export function newBreaker(limits: BreakerLimits): Breaker {
  return { state: 'closed', failures: 0, restMs: limits.restMs, restsUntil: 0 }
}

/** The state of the breaker after `event` at the time `now`. */
export function transition(breaker: Breaker, event: BreakerEvent, limits: BreakerLimits, now: number): Breaker {
  const steps: Record<Step, () => Breaker> = {
    stay: () => breaker,
    clear: () => (breaker.failures === 0 ? breaker : { ...breaker, failures: 0 }),
    count: () => {
      const failures = breaker.failures + 1
      return failures < limits.failuresMax ? { ...breaker, failures } : rest(breaker, limits, now)
    },
    probe: () => ({ ...breaker, state: 'half_open' }),
    close: () => newBreaker(limits),
    reopen: () => rest(breaker, limits, now),
  }
  return steps[BREAKER[breaker.state][event]]()
}

function rest(breaker: Breaker, limits: BreakerLimits, now: number): Breaker {
  const { restMs } = breaker
  return { state: 'open', failures: 0, restMs: Math.min(restMs * 2, limits.restMsMax), restsUntil: now + restMs }
}

interface Admission {
  breaker: Breaker
  admitted: boolean
  /** How long the caller must wait before the next try, in ms; 0 if the call is admitted. */
  afterMs: number
}

/**
 * Whether a call may go out. The first call after a pause is the probe; other calls are refused until the probe has
 * ended.
 */
export function admit(breaker: Breaker, limits: BreakerLimits, now: number): Admission {
  if (breaker.state === 'closed') return { breaker, admitted: true, afterMs: 0 }
  if (breaker.state === 'half_open') return { breaker, admitted: false, afterMs: limits.restMs }
  if (now < breaker.restsUntil) return { breaker, admitted: false, afterMs: breaker.restsUntil - now }
  return { breaker: transition(breaker, 'elapsed', limits, now), admitted: true, afterMs: 0 }
}
