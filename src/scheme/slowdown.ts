// How a provider slows this process, for people on call: by what, and since when. One answer of 429 among a few calls hardly
// changes the rate, so each sign counts for a minute. Pure: the rate itself is aimd.ts's, and nothing here changes it.
import type { Overload } from './aimd.ts'

/** `throttled` is a 429, `failing` a 5xx that says nothing of the request; `breaker_open`: calls are held back. */
type SlowedBy = 'throttled' | 'failing' | 'breaker_open'

/** Moments of the clock that was handed in, ms. */
export interface Signs {
  last: Exclude<Overload, 'none'>
  since: number
  lastAt: number
}

export interface Slowdown {
  by: SlowedBy
  /** For so long, ms. */
  forMs: number
}

const SIGN_MS = 60_000

/** What the caller knows of the present beside the signs. */
interface Present {
  isResting: boolean
  /** The rate is below its limit. */
  isBelowLimit: boolean
}

/** The signs after a call at `now` ended with `sign`. */
export function noteSign(before: Signs | undefined, sign: Signs['last'], present: Present, now: number): Signs {
  const since = isGoingOn(before, present, now) ? before.since : now
  return { last: sign, since, lastAt: now }
}

/** Undefined where the provider takes calls at the full rate. */
export function slowdownOf(signs: Signs | undefined, present: Present, now: number): Slowdown | undefined {
  if (!isGoingOn(signs, present, now)) return undefined
  return { by: present.isResting ? 'breaker_open' : signs.last, forMs: now - signs.since }
}

function isGoingOn(signs: Signs | undefined, { isResting, isBelowLimit }: Present, now: number): signs is Signs {
  return signs !== undefined && (isResting || isBelowLimit || now - signs.lastAt < SIGN_MS)
}
