// The circuit breaker: every state with every event, and who is let through when.
import { describe, expect, it } from 'vitest'
import {
  admit,
  BREAKER,
  type Breaker,
  type BreakerEvent,
  type BreakerState,
  newBreaker,
  transition,
} from '../../src/scheme/breaker.ts'

const LIMITS = { failuresMax: 3, restMs: 1_000, restMsMax: 3_000 }
const NOW = 1_000_000
const IN: Record<BreakerState, Breaker> = {
  closed: { state: 'closed', failures: 2, restMs: 1_000, restsUntil: 0 },
  open: { state: 'open', failures: 0, restMs: 2_000, restsUntil: NOW + 400 },
  half_open: { state: 'half_open', failures: 0, restMs: 2_000, restsUntil: NOW },
}

describe('the table', () => {
  const expected: Record<BreakerState, Record<BreakerEvent, Partial<Breaker>>> = {
    closed: {
      success: { state: 'closed', failures: 0 },
      failure: { state: 'open', restsUntil: NOW + 1_000, restMs: 2_000 },
      elapsed: IN.closed,
    },
    open: { success: IN.open, failure: IN.open, elapsed: { state: 'half_open' } },
    half_open: {
      success: newBreaker(LIMITS),
      failure: { state: 'open', restsUntil: NOW + 2_000, restMs: 3_000 },
      elapsed: IN.half_open,
    },
  }
  const cells = Object.entries(BREAKER).flatMap(([state, row]) =>
    Object.keys(row).map(event => [state as BreakerState, event as BreakerEvent] as const),
  )

  it('has a cell for every state and event', () => {
    expect(cells).toHaveLength(9)
  })

  it.each(cells)('%s, %s', (state, event) => {
    expect(transition(IN[state], event, LIMITS, NOW)).toMatchObject(expected[state][event])
  })
})

describe('a call', () => {
  it('goes out while closed, and fewer failures than the limit keep it closed', () => {
    const two = transition(transition(newBreaker(LIMITS), 'failure', LIMITS, NOW), 'failure', LIMITS, NOW)
    expect(admit(two, LIMITS, NOW)).toMatchObject({ admitted: true, afterMs: 0 })
    expect(transition(transition(two, 'success', LIMITS, NOW), 'failure', LIMITS, NOW).state).toBe('closed')
  })

  it('is kept back while it rests, for as long as it rests', () => {
    expect(admit(IN.open, LIMITS, NOW)).toEqual({ breaker: IN.open, admitted: false, afterMs: 400 })
  })

  it('that comes first after the rest is the probe; the next ones wait for it', () => {
    const { breaker, admitted } = admit(IN.open, LIMITS, NOW + 400)
    expect({ admitted, state: breaker.state }).toEqual({ admitted: true, state: 'half_open' })
    expect(admit(breaker, LIMITS, NOW + 400).admitted).toBe(false)
  })

  it('rests longer after each probe that fails, up to the limit', () => {
    let breaker = transition(IN.closed, 'failure', LIMITS, NOW)
    const rests = [1, 2, 3].map(() => {
      const until = breaker.restsUntil
      breaker = transition(admit(breaker, LIMITS, until).breaker, 'failure', LIMITS, until)
      return breaker.restsUntil - until
    })
    expect(rests).toEqual([2_000, 3_000, 3_000])
  })
})
