// How fast a network is asked, as a value: a token bucket whose rate falls by a factor when the network says that it is
// too much and rises by steps otherwise (AIMD), with a part kept back so that interactive calls never queue behind bulk.
// What is learnt is a part of the limit, so that it stays true when the limit changes. It has no timer and no queue;
// those are the pacer's.
import type { Urgency } from './provider.ts'

/** How a call strained the network: `throttled` is a 429, `failing` a 5xx that says nothing of the request. */
export type Strain = 'none' | 'throttled' | 'failing'

export interface PaceLimits {
  /** What this process may use at most; 0: nothing at present. */
  ratePerSecond: number
  inFlightMax: number
}

export interface Pace {
  /** Of the limit: what is used at present, above 0 and at most 1. */
  part: number
  /** The part at which it was last too much: below it the rate rises fast, near it slowly. */
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

/** Of the limit, per second. */
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
const PART_MIN = 0.01

export function newPace(limits: PaceLimits, now: number): Pace {
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
export const rateOf = ({ part }: Pick<Pace, 'part'>, { ratePerSecond }: PaceLimits) => part * ratePerSecond

const burst = (rate: number) => Math.max(1 + RESERVED_TOKENS, rate * BURST_SECONDS)

/** What has come since: tokens, and a higher rate. */
export function refill(pace: Pace, limits: PaceLimits, now: number): Pace {
  // A clock that was set back gives nothing, and takes nothing.
  if (now <= pace.at) return { ...pace, at: now }
  const seconds = (now - pace.at) / 1_000
  const raise = pace.part < pace.knee * NEAR_KNEE ? RAISE : RAISE_NEAR_KNEE
  const part = Math.min(1, pace.part + raise * seconds)
  const rate = rateOf(pace, limits)
  return { ...pace, part, tokens: Math.min(burst(rate), pace.tokens + rate * seconds), at: now }
}

export interface Start {
  pace: Pace
  started: boolean
  /** When to ask again, ms; Infinity: when a call has ended, or the limit has changed. */
  waitMs: number
}

/** Takes a token and a place for a call, if it is its turn. */
export function start(before: Pace, limits: PaceLimits, urgency: Urgency, now: number): Start {
  const pace = refill(before, limits, now)
  const bulk = urgency === 'bulk'
  if (limits.ratePerSecond === 0 || isFull(pace, limits, urgency))
    return { pace, started: false, waitMs: Number.POSITIVE_INFINITY }
  const needed = bulk ? 1 + RESERVED_TOKENS : 1
  // A hair less than whole is whole: sums of fractions never quite meet it.
  if (pace.tokens < needed - 1e-6)
    return { pace, started: false, waitMs: Math.max(1, ((needed - pace.tokens) / rateOf(pace, limits)) * 1_000) }
  const inFlight = { ...pace.inFlight, [urgency]: pace.inFlight[urgency] + 1 }
  return { pace: { ...pace, tokens: pace.tokens - 1, inFlight }, started: true, waitMs: 0 }
}

/** Whether there is no place for such a call, at any rate. */
export function isFull({ inFlight }: Pace, { inFlightMax }: PaceLimits, urgency: Urgency): boolean {
  if (inFlight.interactive + inFlight.bulk >= inFlightMax) return true
  return urgency === 'bulk' && inFlight.bulk >= Math.max(1, Math.floor(inFlightMax * (1 - RESERVED_PLACES)))
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
  const knee = strain === 'throttled' ? pace.part : pace.knee
  const part = Math.max(PART_MIN, pace.part * cut.factor)
  return { ...pace, part, knee, tokens: Math.min(pace.tokens, burst(rateOf({ part }, limits))), cutAt: now }
}
