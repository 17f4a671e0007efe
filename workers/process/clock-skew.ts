// Compares this host's clock with the store's. Times of envelopes and cards are judged by this clock. If it differs by
// more than 5 s, the workers that are given here take no jobs until a later check finds it right.
import { clockReasons, SKEW_MS_MAX } from '../../src/health.ts'
import type { Worker } from '../../src/queue/engine.ts'
import { every } from '../../src/recurring.ts'
import { measureSkew } from '../../src/store/server.ts'
import type { Deps } from '../deps.ts'

const CHECK_MS = 30_000

export interface ClockWatch {
  /** Whether the last check found the clock wrong: then workers must be opened paused. */
  isOff(): boolean
  /** Why the process isn't ready. */
  tooFar(): string[]
  /** Checks from now on, and lets these workers wait or go on. Returns a function that ends it. */
  watch(workers: readonly Worker[]): () => Promise<void>
}

/** Checks the clock for the first time. Workers are opened after that: none may judge a job by a wrong clock. */
export async function openClockWatch(deps: Pick<Deps, 'store' | 'clock' | 'metrics' | 'log'>): Promise<ClockWatch> {
  let skewMs = 0
  let paused = false
  let workers: readonly Worker[] = []
  const check = async () => {
    skewMs = (await measureSkew(deps.store, deps.clock)) ?? skewMs
    deps.metrics.clockSkew.set(skewMs / 1000)
    const off = Math.abs(skewMs) > SKEW_MS_MAX
    if (off !== paused) {
      deps.log[off ? 'error' : 'info'](
        { skewMs },
        off ? 'this clock is off; no jobs are taken until it is right' : 'the clock is right again',
      )
      await Promise.all(workers.map(worker => (off ? worker.pause() : worker.resume())))
      paused = off
    }
  }
  await check()
  return {
    tooFar: () => clockReasons(skewMs),
    isOff: () => paused,
    watch(given) {
      workers = given
      return every(CHECK_MS, check, deps)
    },
  }
}
