// Counts dropped envelopes: in a metric by reason, and in the store by the client that they claim. It logs only some of
// them: a stranger who can write to the queue must not be able to fill the log.
import type { Clock } from '../../src/clock.ts'
import type { Drop } from '../../src/job/envelope/envelope.ts'
import type { Logger } from '../../src/logger.ts'
import { every } from '../../src/recurring.ts'
import * as droppedEnvelopes from '../../src/store/access/dropped-envelopes.ts'
import type { Db } from '../../src/store/pool.ts'
import type { WorkerMetrics } from './metrics.ts'

const LOG_MS = 10_000
const WRITE_MS = 2_000
/** If a client's envelopes weren't dropped for this long, in ms, its count in the store starts again from zero. */
const PAUSE_MS = 10 * 60_000

interface Dropping {
  /** An existing client; nobody has proved that it sent the envelopes. */
  claimedClient?: string | undefined
  count?: number
}

export interface DroppedEnvelopes {
  note(reason: Drop, dropping?: Dropping): void
  close(): Promise<void>
}

interface DroppedEnvelopesOptions {
  store: Db
  metrics: Pick<WorkerMetrics, 'refusedEnvelopes'>
  log: Logger
  clock: Clock
}

export function openDroppedEnvelopes({ store, metrics, log, clock }: DroppedEnvelopesOptions): DroppedEnvelopes {
  const loggedAt = new Map<Drop, number>()
  /** Counts that aren't written yet, by reason and client; at most one per reason and existing client. */
  let unwritten = new Map<string, droppedEnvelopes.Dropped>()

  function add({ reason, claimedClient, dropped }: droppedEnvelopes.Dropped): void {
    const key = `${reason} ${claimedClient ?? ''}`
    unwritten.set(key, { reason, claimedClient, dropped: dropped + (unwritten.get(key)?.dropped ?? 0) })
  }

  async function write(): Promise<void> {
    const counted = [...unwritten.values()]
    unwritten = new Map()
    try {
      await droppedEnvelopes.addAll(store, counted, PAUSE_MS)
    } catch (error) {
      for (const one of counted) add(one)
      throw error
    }
  }

  const stop = every(WRITE_MS, write, { log })
  return {
    note(reason, { claimedClient, count = 1 } = {}) {
      metrics.refusedEnvelopes.inc({ reason }, count)
      add({ reason, claimedClient, dropped: count })
      if (clock() - (loggedAt.get(reason) ?? 0) < LOG_MS) return
      loggedAt.set(reason, clock())
      log.warn({ reason, claimedClient }, 'envelopes are dropped; the counter tells how many')
    },
    async close() {
      await stop()
      await write().catch(() => undefined)
    },
  }
}
