// How fast a network is asked, as a value: a token bucket whose rate falls by a factor when the network says that it is
// too much and rises by steps otherwise (AIMD), with a part kept back so that interactive calls never queue behind bulk.
// It has no timer and no queue; those are the pacer's.
import type { Urgency } from './provider.ts'

/** How a call strained the network: `throttled` is a 429, `failing` a 5xx that says nothing of the request. */
export type Strain = 'none' | 'throttled' | 'failing'

export interface PaceLimits {
  /** What this process may use at most. */
  ratePerSecond: number
  inFlightMax: number
}

export interface Pace {
  /** Calls per second at present. */
  rate: number
  /** The rate at which it was last too much: below it the rate rises fast, near it slowly. */
  knee: number
  tokens: number
  /** When `tokens` was true, ms since the epoch. */
  at: number
  cutAt: number
  inFlight: Record<Urgency, number>
}

/** Calls that may go out at once after a pause, as seconds of the rate: enough to make up for a late timer. */
const BURST_SECONDS = 0.1
/** Tokens and places that bulk leaves for interactive calls. */
const RESERVED_TOKENS = 2
const RESERVED_PLACES = 0.25

/** Of the granted rate, per second. */
const RAISE = 0.05
const RAISE_NEAR_KNEE = 0.005
const NEAR_KNEE = 0.97

const CUTS = {
  /** Just above what is allowed: a little less is right. */
  throttled: { factor: 0.95, everyMs: 100 },
  /** Cut a moment ago and still too much: far above. */
  stillThrottled: { factor: 0.7, everyMs: 100 },
  failing: { factor: 0.5, everyMs: 1_000 },
} as const
const STILL_MS = 1_500
const RATE_MIN = 0.5

export function newPace(limits: PaceLimits, now: number): Pace {
  const rate = limits.ratePerSecond
  return {
    rate,
    knee: Number.POSITIVE_INFINITY,
    tokens: burst(rate),
    at: now,
    cutAt: Number.NEGATIVE_INFINITY,
    inFlight: { interactive: 0, bulk: 0 },
  }
}

const burst = (rate: number) => Math.max(1 + RESERVED_TOKENS, rate * BURST_SECONDS)

/** What has come since: tokens, and a higher rate. */
export function refill(pace: Pace, limits: PaceLimits, now: number): Pace {
  const seconds = Math.max(0, now - pace.at) / 1_000
  if (seconds === 0) return pace
  const raise = pace.rate < pace.knee * NEAR_KNEE ? RAISE : RAISE_NEAR_KNEE
  const rate = Math.min(limits.ratePerSecond, pace.rate + limits.ratePerSecond * raise * seconds)
  return { ...pace, rate, tokens: Math.min(burst(rate), pace.tokens + pace.rate * seconds), at: now }
}

export interface Start {
  pace: Pace
  started: boolean
  /** When to ask again, ms; Infinity: when a call has ended. */
  waitMs: number
}

/** Takes a token and a place for a call, if it is its turn. */
export function start(before: Pace, limits: PaceLimits, urgency: Urgency, now: number): Start {
  const pace = refill(before, limits, now)
  const bulk = urgency === 'bulk'
  const busy = pace.inFlight.interactive + pace.inFlight.bulk
  const placesForBulk = Math.max(1, Math.floor(limits.inFlightMax * (1 - RESERVED_PLACES)))
  if (busy >= limits.inFlightMax || (bulk && pace.inFlight.bulk >= placesForBulk))
    return { pace, started: false, waitMs: Number.POSITIVE_INFINITY }
  const needed = bulk ? 1 + RESERVED_TOKENS : 1
  // A hair less than whole is whole: sums of fractions never quite meet it.
  if (pace.tokens < needed - 1e-6)
    return { pace, started: false, waitMs: Math.max(1, ((needed - pace.tokens) / pace.rate) * 1_000) }
  const inFlight = { ...pace.inFlight, [urgency]: pace.inFlight[urgency] + 1 }
  return { pace: { ...pace, tokens: pace.tokens - 1, inFlight }, started: true, waitMs: 0 }
}

/** A call has ended. */
export function settle(before: Pace, limits: PaceLimits, urgency: Urgency, strain: Strain, now: number): Pace {
  const filled = refill(before, limits, now)
  const pace = { ...filled, inFlight: { ...filled.inFlight, [urgency]: filled.inFlight[urgency] - 1 } }
  if (strain === 'none') return pace
  const sinceMs = now - pace.cutAt
  const cut = strain === 'failing' ? CUTS.failing : sinceMs < STILL_MS ? CUTS.stillThrottled : CUTS.throttled
  // The rest of what was on its way at the old rate says nothing new.
  if (sinceMs < cut.everyMs) return pace
  const knee = strain === 'throttled' ? pace.rate : pace.knee
  const rate = Math.max(Math.min(RATE_MIN, limits.ratePerSecond), pace.rate * cut.factor)
  return { ...pace, rate, knee, tokens: Math.min(pace.tokens, burst(rate)), cutAt: now }
}
