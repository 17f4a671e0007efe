// A circuit breaker, as a value: after many failures in a row a network is left alone for a while, then asked by one
// call whether it is back. It judges no answer: what counts as a failure is told to it.

export type BreakerState = 'closed' | 'open' | 'half_open'
/** `elapsed`: a call asks to be let through and the time of rest is over. */
export type BreakerEvent = 'success' | 'failure' | 'elapsed'

type Step = 'stay' | 'clear' | 'count' | 'probe' | 'close' | 'reopen'

/** Late answers to calls begun before it opened change nothing. */
export const BREAKER = {
  closed: { success: 'clear', failure: 'count', elapsed: 'stay' },
  open: { success: 'stay', failure: 'stay', elapsed: 'probe' },
  half_open: { success: 'close', failure: 'reopen', elapsed: 'stay' },
} as const satisfies Record<BreakerState, Record<BreakerEvent, Step>>

export interface Breaker {
  state: BreakerState
  /** In a row, while closed. */
  failures: number
  /** How long it rests when it opens next, ms. */
  restMs: number
  /** ms since the epoch; while open. */
  restsUntil: number
}

export interface BreakerLimits {
  failuresMax: number
  /** The first rest; doubles with every probe that fails. */
  restMs: number
  restMsMax: number
}

export function newBreaker(limits: BreakerLimits): Breaker {
  return { state: 'closed', failures: 0, restMs: limits.restMs, restsUntil: 0 }
}

/** What the breaker is after `event` at `now`. */
export function turn(breaker: Breaker, event: BreakerEvent, limits: BreakerLimits, now: number): Breaker {
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

export interface Admission {
  breaker: Breaker
  admitted: boolean
  /** How long to stay away, ms; 0 where admitted. */
  afterMs: number
}

/** May a call go out? The one that finds the rest over is the probe; others wait for how it ends. */
export function admit(breaker: Breaker, limits: BreakerLimits, now: number): Admission {
  if (breaker.state === 'closed') return { breaker, admitted: true, afterMs: 0 }
  if (breaker.state === 'half_open') return { breaker, admitted: false, afterMs: limits.restMs }
  if (now < breaker.restsUntil) return { breaker, admitted: false, afterMs: breaker.restsUntil - now }
  return { breaker: turn(breaker, 'elapsed', limits, now), admitted: true, afterMs: 0 }
}
