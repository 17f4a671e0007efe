// Additive increase, multiplicative decrease (AIMD) for calls to a network, as pure functions over a value: a token
// bucket whose rate falls by a factor when the network reports too many calls, and rises by steps otherwise. A part of
// the bucket is reserved for interactive calls, so that bulk calls never use all of it. The learnt rate is stored as a
// fraction of the limit, so that it stays valid when the limit changes. The timer and the queues are in
// rate-limiter.ts.
import type { Urgency } from './provider.ts'

/** How a call strained the network: `throttled` is a 429, `failing` a 5xx that says nothing of the request. */
export type Overload = 'none' | 'throttled' | 'failing'

export interface RateLimits {
  /** The most that this process may use; 0: no calls at present. */
  ratePerSecond: number
  inFlightMax: number
}

export interface AimdState {
  /** The fraction of the limit that is used at present, above 0 and at most 1. */
  part: number
  /** The fraction at which the network last reported too many calls: below it the rate rises fast, near it slowly. */
  knee: number
  tokens: number
  /** When `tokens` was computed, ms since the epoch. */
  at: number
  cutAt: number
  inFlight: Record<Urgency, number>
}

/** Calls that may go out at once after a pause, as seconds of the rate: enough to make up for a late timer. */
const BURST_SECONDS = 0.1
/** Tokens and places that bulk calls leave for interactive calls. */
const RESERVED_TOKENS = 2
const RESERVED_PLACES = 0.25

/** Fraction of the limit per second by which the rate rises. */
const RAISE = 0.05
const RAISE_NEAR_KNEE = 0.005
const NEAR_KNEE = 0.97

const CUTS = {
  /** The rate is just above what the network allows: a small cut is enough. */
  throttled: { factor: 0.95, everyMs: 100 },
  /** The rate was cut a moment ago and is still too high: it is far above what the network allows. */
  stillThrottled: { factor: 0.7, everyMs: 100 },
  failing: { factor: 0.5, everyMs: 1_000 },
} as const
const STILL_MS = 1_500
const PART_MIN = 0.01

export function newAimdState(limits: RateLimits, now: number): AimdState {
  return {
    part: 1,
    knee: Number.POSITIVE_INFINITY,
    tokens: limits.ratePerSecond === 0 ? 0 : burst(limits.ratePerSecond),
    at: now,
    cutAt: Number.NEGATIVE_INFINITY,
    inFlight: { interactive: 0, bulk: 0 },
  }
}

/** Calls per second at present. */
export const rateOf = ({ part }: Pick<AimdState, 'part'>, { ratePerSecond }: RateLimits) => part * ratePerSecond

const burst = (rate: number) => Math.max(1 + RESERVED_TOKENS, rate * BURST_SECONDS)

/** Adds the tokens of the time that has passed, and raises the rate. */
export function refill(state: AimdState, limits: RateLimits, now: number): AimdState {
  // A clock that was set back adds no tokens and removes none.
  if (now <= state.at) return { ...state, at: now }
  const seconds = (now - state.at) / 1_000
  const raise = state.part < state.knee * NEAR_KNEE ? RAISE : RAISE_NEAR_KNEE
  const part = Math.min(1, state.part + raise * seconds)
  const rate = rateOf(state, limits)
  return { ...state, part, tokens: Math.min(burst(rate), state.tokens + rate * seconds), at: now }
}

interface Start {
  state: AimdState
  started: boolean
  /** How long to wait before the next try, in ms. Infinity: until a call has ended or the limit has changed. */
  waitMs: number
}

/**
 * Takes a token of the bucket and a place for a call, if there is one of each. A bulk call leaves some of both to interactive
 * ones.
 */
export function start(before: AimdState, limits: RateLimits, urgency: Urgency, now: number): Start {
  const state = refill(before, limits, now)
  const bulk = urgency === 'bulk'
  if (limits.ratePerSecond === 0 || isFull(state, limits, urgency))
    return { state, started: false, waitMs: Number.POSITIVE_INFINITY }
  const needed = bulk ? 1 + RESERVED_TOKENS : 1
  // A sum of fractions may miss a whole number by a rounding error.
  if (state.tokens < needed - 1e-6)
    return { state, started: false, waitMs: Math.max(1, ((needed - state.tokens) / rateOf(state, limits)) * 1_000) }
  const inFlight = { ...state.inFlight, [urgency]: state.inFlight[urgency] + 1 }
  return { state: { ...state, tokens: state.tokens - 1, inFlight }, started: true, waitMs: 0 }
}

/** Whether as many calls are in flight as this urgency allows. */
export function isFull({ inFlight }: AimdState, { inFlightMax }: RateLimits, urgency: Urgency): boolean {
  if (inFlight.interactive + inFlight.bulk >= inFlightMax) return true
  return urgency === 'bulk' && inFlight.bulk >= Math.max(1, Math.floor(inFlightMax * (1 - RESERVED_PLACES)))
}

/** Frees the place of a call that has ended, and cuts the rate if the call strained the network. */
export function endCall(
  before: AimdState,
  limits: RateLimits,
  urgency: Urgency,
  overload: Overload,
  now: number,
): AimdState {
  const filled = refill(before, limits, now)
  const state = { ...filled, inFlight: { ...filled.inFlight, [urgency]: filled.inFlight[urgency] - 1 } }
  if (overload === 'none') return state
  const sinceMs = now - state.cutAt
  const cut = overload === 'failing' ? CUTS.failing : sinceMs < STILL_MS ? CUTS.stillThrottled : CUTS.throttled
  // Answers to calls that were sent at the old rate say nothing about the new rate.
  if (sinceMs < cut.everyMs) return state
  const knee = overload === 'throttled' ? state.part : state.knee
  const part = Math.max(PART_MIN, state.part * cut.factor)
  return { ...state, part, knee, tokens: Math.min(state.tokens, burst(rateOf({ part }, limits))), cutAt: now }
}
