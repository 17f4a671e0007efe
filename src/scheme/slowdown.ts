// Says by what a provider slows this process, and since when, for people on call. A single 429 among a few calls hardly
// changes the rate, so each sign counts for a minute. Pure; aimd.ts changes the rate.
import type { Overload } from './aimd.ts'

/** `throttled`: a 429; `failing`: a 5xx that isn't about the request; `breaker_open`: calls are held back. */
type SlowedBy = 'throttled' | 'failing' | 'breaker_open'

/** When signs were seen, in ms of the caller's clock. */
export interface Signs {
  last: Exclude<Overload, 'none'>
  since: number
  lastAt: number
}

export interface Slowdown {
  by: SlowedBy
  /** For how many ms calls have been slowed. */
  forMs: number
}

const SIGN_MS = 60_000

/** What the caller knows of the present, besides the signs. */
interface Present {
  isResting: boolean
  /** The rate is below its limit. */
  isBelowLimit: boolean
}

/** The signs after a call ended at `now` with `sign`. */
export function noteSign(before: Signs | undefined, sign: Signs['last'], present: Present, now: number): Signs {
  const since = isGoingOn(before, present, now) ? before.since : now
  return { last: sign, since, lastAt: now }
}

/**
 * How the provider slows the process; undefined if it accepts calls at the full rate and has shown no overload for a
 * minute.
 */
export function slowdownOf(signs: Signs | undefined, present: Present, now: number): Slowdown | undefined {
  if (!isGoingOn(signs, present, now)) return undefined
  return { by: present.isResting ? 'breaker_open' : signs.last, forMs: now - signs.since }
}

function isGoingOn(signs: Signs | undefined, { isResting, isBelowLimit }: Present, now: number): signs is Signs {
  return signs !== undefined && (isResting || isBelowLimit || now - signs.lastAt < SIGN_MS)
}
