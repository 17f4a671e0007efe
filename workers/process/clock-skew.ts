// Compares this host's clock with the store's. Times of envelopes and cards are judged by this clock. If it differs by
// more than 5 s, the workers that are given here take no jobs until a later check finds it right.
import type { Worker } from '../../src/queue/engine.ts'
import { every } from '../../src/recurring.ts'
import * as storeServer from '../../src/store/server.ts'
import type { Deps } from '../deps.ts'

const SKEW_MS_MAX = 5_000
const CHECK_MS = 30_000

/** How far this clock is ahead of the store's, in ms; half the round trip is subtracted. */
async function measureSkew({ store, clock }: Pick<Deps, 'store' | 'clock'>): Promise<number> {
  const before = clock()
  const now = await storeServer.readClock(store)
  return (before + clock()) / 2 - now
}

/** Watches the clock. The first check ends before this resolves, so that no worker begins with a wrong clock. */
export async function watchClock(
  deps: Deps,
  workers: readonly Worker[],
): Promise<{ tooFar: () => string[]; stop: () => Promise<void> }> {
  let skewMs = 0
  let paused = false
  const check = async () => {
    skewMs = await measureSkew(deps)
    deps.metrics.clockSkew.set(skewMs / 1000)
    const off = Math.abs(skewMs) > SKEW_MS_MAX
    if (off !== paused) {
      deps.log[off ? 'error' : 'info'](
        { skewMs: Math.round(skewMs) },
        off ? 'this clock is off; no jobs are taken until it is right' : 'the clock is right again',
      )
      await Promise.all(workers.map(worker => (off ? worker.pause() : worker.resume())))
      paused = off
    }
  }
  await check()
  return {
    tooFar: () =>
      Math.abs(skewMs) > SKEW_MS_MAX ? [`the clock is ${Math.round(skewMs / 1000)} s off the store's`] : [],
    stop: every(CHECK_MS, check, deps),
  }
}
