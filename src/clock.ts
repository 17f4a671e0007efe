// The clock is a value that callers pass in, so that pure rooms never read the time themselves.

/** Milliseconds since the epoch. */
export type Clock = () => number

export const systemClock: Clock = () => Date.now()

/** `YYYY-MM-DD` in UTC. */
export function dateOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10)
}

/** A timer that is later than this shows that the process stood still, in ms. */
const LATE_MS = 100
/** So much longer an answer is awaited then, in ms, if the limit isn't shorter. */
const AGAIN_MS = 2_000

/** A limit may be over so much later than it says, in ms, beside the time for which the process stood still. */
export const LATER_MS_MAX = LATE_MS + AGAIN_MS

/**
 * Calls `over` after `ms`, unless the returned function was called before. If this process stood still when the limit was
 * over (the host slept, or was too busy), answers that came meanwhile are heard first: `over` is called a while later.
 */
export function startTimeLimit(ms: number, over: () => void): () => void {
  const due = performance.now() + ms
  let timer = setTimeout(() => {
    if (performance.now() - due <= LATE_MS) over()
    else timer = setTimeout(over, Math.min(ms, AGAIN_MS))
  }, ms)
  return () => clearTimeout(timer)
}
