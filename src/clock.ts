// The clock is a value that callers pass in, so that pure rooms never read the time themselves.

/** Milliseconds since the epoch. */
export type Clock = () => number

export const systemClock: Clock = () => Date.now()

/** `YYYY-MM-DD` in UTC. */
export function dateOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10)
}
