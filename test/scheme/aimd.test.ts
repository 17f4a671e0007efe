// The rate against a model of a network that allows 200 calls a second, in virtual time: how much of it is used, how
// many are turned away, how long interactive calls wait.
import { describe, expect, it } from 'vitest'
import { type AimdState, endCall, newAimdState, rateOf, start } from '../../src/scheme/aimd.ts'
import type { Urgency } from '../../src/scheme/provider.ts'

interface Run {
  cards: number
  granted: number
  allowed: number
  latencyMs: number
  /** The pause between two interactive calls, in ms. */
  interactiveEveryMs: number
  /** Timers of the process are late by up to that much. */
  jitterMs?: number
}

/** Makes `cards` bulk calls; a call that is turned away is repeated. */
function work({ cards, granted, allowed, latencyMs, interactiveEveryMs, jitterMs = 0 }: Run) {
  const limits = { ratePerSecond: granted, inFlightMax: 64 }
  let now = 0
  let state: AimdState = newAimdState(limits, now)
  let bucket = allowed / 4
  let filledAt = 0
  let waiting = cards
  let done = 0
  let calls = 0
  let throttled = 0
  let mostInFlight = 0
  const interactive: number[] = []
  const waits: number[] = []
  const ends: { at: number; urgency: Urgency; ok: boolean }[] = []
  let nextInteractive = interactiveEveryMs
  const send = (urgency: Urgency): boolean => {
    const next = start(state, limits, urgency, now)
    state = next.state
    if (!next.started) return false
    bucket = Math.min(allowed / 4, bucket + ((now - filledAt) / 1_000) * allowed)
    filledAt = now
    const ok = bucket >= 1
    if (ok) bucket -= 1
    calls += 1
    if (!ok) throttled += 1
    ends.push({ at: now + latencyMs, urgency, ok })
    mostInFlight = Math.max(mostInFlight, state.inFlight.bulk + state.inFlight.interactive)
    return true
  }
  while (done < cards) {
    now += 1 + (jitterMs === 0 ? 0 : (now * 7_919) % jitterMs)
    while (ends[0] !== undefined && ends[0].at <= now) {
      const { urgency, ok } = ends.shift() ?? { urgency: 'bulk', ok: true }
      state = endCall(state, limits, urgency, ok ? 'none' : 'throttled', now)
      if (urgency === 'bulk') {
        if (ok) done += 1
        else waiting += 1
      }
    }
    while (nextInteractive <= now) {
      interactive.push(nextInteractive)
      nextInteractive += interactiveEveryMs
    }
    while (interactive[0] !== undefined && send('interactive')) waits.push(now - (interactive.shift() ?? now))
    if (interactive.length === 0) while (waiting > 0 && send('bulk')) waiting -= 1
  }
  const p99 = waits.sort((a, b) => a - b)[Math.floor(waits.length * 0.99)] ?? 0
  return {
    used: (calls - throttled) / ((now / 1_000) * allowed),
    turnedAway: throttled / calls,
    p99,
    mostInFlight,
  }
}

describe('the rate', () => {
  it.each([
    ['what is allowed is granted', { granted: 200, allowed: 200 }],
    ['timers are late', { granted: 200, allowed: 200, jitterMs: 40 }],
    ['twice as much is granted as is allowed', { granted: 400, allowed: 200 }],
    ['a quarter more is granted than is allowed', { granted: 250, allowed: 200 }],
  ])('where %s: 95 %% of the rate is used, and under 1 %% turned away', (_, run) => {
    const { used, turnedAway, p99, mostInFlight } = work({
      cards: 10_000,
      latencyMs: 50,
      interactiveEveryMs: 250,
      ...run,
    })
    expect(used).toBeGreaterThanOrEqual(0.95)
    expect(turnedAway).toBeLessThan(0.01)
    expect(p99).toBeLessThan(300)
    expect(mostInFlight).toBeLessThanOrEqual(64)
  })

  it('keeps interactive calls from waiting behind ten thousand cards', () => {
    const { p99 } = work({ cards: 10_000, granted: 200, allowed: 1_000, latencyMs: 20, interactiveEveryMs: 20 })
    expect(p99).toBeLessThan(20)
  })

  it('leaves places for interactive calls where bulk calls hang', () => {
    const limits = { ratePerSecond: 10_000, inFlightMax: 8 }
    let state = newAimdState(limits, 0)
    let started = 0
    for (let call = 0; call < 20; call += 1) {
      const next = start(state, limits, 'bulk', 0)
      state = next.state
      if (next.started) started += 1
    }
    expect(started).toBe(6)
    expect(start(state, limits, 'bulk', 1).waitMs).toBe(Number.POSITIVE_INFINITY)
    expect(start(state, limits, 'interactive', 1).started).toBe(true)
  })

  it('falls once for all that was on its way, by half at a failing network, and comes back', () => {
    const limits = { ratePerSecond: 100, inFlightMax: 64 }
    let state = newAimdState(limits, 0)
    for (let call = 0; call < 20; call += 1) state = endCall(state, limits, 'bulk', 'failing', 10)
    expect(rateOf(state, limits)).toBeCloseTo(50)
    state = endCall(state, limits, 'bulk', 'failing', 1_200)
    expect(rateOf(state, limits)).toBeLessThan(30)
    expect(rateOf(endCall(state, limits, 'bulk', 'none', 30_000), limits)).toBe(100)
  })

  it('keeps what it has learnt when its limit changes', () => {
    const limits = { ratePerSecond: 100, inFlightMax: 64 }
    const state = endCall(newAimdState(limits, 0), limits, 'bulk', 'failing', 10)
    expect(rateOf(state, { ...limits, ratePerSecond: 10 })).toBeCloseTo(5)
    expect(rateOf(state, { ...limits, ratePerSecond: 200 })).toBeCloseTo(100)
  })

  it('starts nothing where nothing is granted, though there are tokens left', () => {
    const limits = { ratePerSecond: 0, inFlightMax: 64 }
    const state = newAimdState({ ...limits, ratePerSecond: 100 }, 0)
    expect(start(state, limits, 'interactive', 0)).toMatchObject({ started: false, waitMs: Number.POSITIVE_INFINITY })
    expect(start(newAimdState(limits, 0), { ...limits, ratePerSecond: 100 }, 'interactive', 1_000).started).toBe(true)
  })

  it('goes on where the clock is set back', () => {
    const limits = { ratePerSecond: 10, inFlightMax: 64 }
    let state = { ...newAimdState(limits, 1_000_000), tokens: 0 }
    state = start(state, limits, 'interactive', 500).state
    expect(start(state, limits, 'interactive', 600).started).toBe(true)
  })
})
