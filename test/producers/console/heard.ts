// As workers and a scheduler say that they are there: once, or until a test has ended. Without it a page says unknown 10 s later,
// rightly, and a busy machine takes that long for a test.
import { setTimeout as pause } from 'node:timers/promises'
import { CATALOGUE } from '../../../src/job/composition.ts'
import * as processes from '../../../src/store/access/processes.ts'
import type { Store } from '../../../src/store/pool.ts'
import * as watched from '../../../src/store/watch/watched.ts'

const IDS = ['11111111-1111-4111-8111-111111111111', '22222222-2222-4222-8222-222222222222'] as const
const BEAT_MS = 1_000

/** `checks` and `queue` are what is told beside: that all is well, unless they say something else. */
export interface Told {
  host?: string
  checks?: Parameters<typeof watched.writeChecks>[1]
  queue?: Partial<Parameters<typeof watched.writeQueues>[1][number]>
}

export async function beat(store: Store, { host = 'one', checks, queue }: Told = {}): Promise<void> {
  const at = { host, version: '1.0.0', connections: 1, keys: [], features: [] }
  await processes.see(store, { ...at, processId: IDS[0], role: 'bulk', kinds: CATALOGUE.kinds })
  await processes.see(store, { ...at, processId: IDS[1], role: 'scheduler', kinds: [] })
  await watched.writeChecks(store, checks ?? [{ name: 'store', state: 'well', says: 'x', next: null }])
  await watched.writeQueues(
    store,
    CATALOGUE.kinds.map(kind => ({ kind, waiting: 0, active: 0, delayed: 0, oldestMs: null, failed: 0, ...queue })),
  )
  await watched.writeMinute(store, { outboxMs: 0, queued: { interactiveMs: 0, failed: 0 } })
}

/** Beats from now on. The returned function ends it. */
export async function keepBeating(store: Store, told: Told = {}): Promise<() => Promise<void>> {
  const stop = new AbortController()
  await beat(store, told)
  const beating = (async () => {
    for (;;) {
      await pause(BEAT_MS, undefined, { signal: stop.signal }).catch(() => undefined)
      if (stop.signal.aborted) return
      await beat(store, told)
    }
  })()
  return () => {
    stop.abort()
    return beating
  }
}
