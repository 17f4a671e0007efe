// Runs work a second time if it needed a key which this process doesn't hold: another process may already use a newer key.
// For the jobs of a worker workers/line/run-job.ts does that.
import { Fault } from '../../errors.ts'

/** A ring whose keys can be read again. */
export interface Refreshing {
  refresh(): Promise<void>
}

/**
 * Runs `work`. If a key isn't held, reads the ring's keys again and runs `work` once more. Work that
 * fails for want of a key must have had no effect.
 */
export async function withReload<T>(ring: Refreshing, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof Fault) || error.code !== 'key_unavailable') throw error
    await ring.refresh()
    return work()
  }
}

/** Reads the ring's keys again if that is long ago: a process that was cut off may have missed that a compromise ended. */
export async function makeAfresh(ring: Refreshing & { isAfresh(): boolean }): Promise<void> {
  if (!ring.isAfresh()) await ring.refresh()
}

/** The function, run by `withReload`. */
export function reloading<Args extends unknown[], T>(
  ring: Refreshing,
  work: (...args: Args) => Promise<T>,
): (...args: Args) => Promise<T> {
  return (...args) => withReload(ring, () => work(...args))
}
