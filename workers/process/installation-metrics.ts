// What waits in the store and the queues of the whole installation, for the scheduler's /metrics. The figures are
// measured on request, at most every ten seconds: counting is expensive on the PostgreSQL engine.
import type { Clock } from '../../src/clock.ts'
import { ASKED_MS_MAX, type Measure, measureOrForget } from '../../src/health.ts'
import { type Catalogue, FAILED_QUEUE } from '../../src/job/catalogue.ts'
import { forget, type Gauge, type MetricsRegistry } from '../../src/metrics.ts'
import { settlesWithin } from '../../src/queue/bounded-call.ts'
import type { Queues } from '../../src/queue/engine.ts'
import * as clientUsers from '../../src/store/access/client-users.ts'
import * as batchCounts from '../../src/store/batch/batch-counts.ts'
import * as chunks from '../../src/store/batch/intake-chunks.ts'
import * as operations from '../../src/store/job/operations.ts'
import * as outbox from '../../src/store/job/outbox.ts'
import { type Db, limitStatements, type Store } from '../../src/store/pool.ts'
import { longestWait } from '../../src/store/watch/lock-waits.ts'

interface MeasureDeps {
  store: Pick<Store, 'transaction'>
  queues: Pick<Queues, 'depth' | 'oldestMs'>
  catalogue: Catalogue
  /** A connection that waits for no lock: those of the store may all be waiting. Undefined: of the store. */
  beside?: Db | undefined
  clock: Clock
  /** Of the features. */
  more: readonly OpenMeasures[]
}

export interface Waiting {
  rows: number
  /** ms since the epoch. */
  oldest: number | null
}

/** What a figure of the store is made with. */
export interface Figures {
  gauge: MetricsRegistry['gauge']
  clock: Clock
  /** Asks in a transaction with a time limit. `forgetSeries`: if there was no answer. */
  one<T>(read: (db: Db) => Promise<T>, set: (answer: T) => void, forgetSeries: () => void): Measure
  /** Forgets the series of these gauges. */
  all(...gauges: Gauge[]): () => void
  /** Seconds. */
  age(waiting: Waiting): number
}

export type OpenMeasures = (figures: Figures) => Measure[]

const KEPT_MS = 10_000
/** How long a request waits for a round. Prometheus gives a scrape up after 10 s, and then all figures are lost. */
const WAIT_MS = 5_000
/** How many figures are asked for at once. The rest of the store's pool is for the scheduler's work. */
const STORE_LANES = 2
const KEY_END_MS = 14 * 86_400_000

/**
 * Opens the gauges. Returns the function that measures them; it doesn't throw. A round that takes longer than a request may
 * wait goes on, and until its end some figures are those of the round before.
 */
export function openInstallationMetrics(registry: MetricsRegistry, deps: MeasureDeps): () => Promise<void> {
  const ofQueues = queueMeasures(registry, deps)
  const ofStore = storeMeasures(registry, deps)
  let measuredAt = Number.NEGATIVE_INFINITY
  let measuring: Promise<unknown> | undefined
  return async () => {
    if (deps.clock() - measuredAt < KEPT_MS) return
    measuring ??= Promise.all([measureAll(ofQueues, 1), measureAll(ofStore, STORE_LANES)]).finally(() => {
      measuredAt = deps.clock()
      measuring = undefined
    })
    await settlesWithin(WAIT_MS, measuring)
  }
}

/** Each figure has its own time limit, so that a slow one takes no other along. */
async function measureAll(measures: readonly Measure[], lanes: number): Promise<void> {
  const left = measures.values()
  const lane = async () => {
    for (const measure of left) await measureOrForget(measure)
  }
  await Promise.all(Array.from({ length: lanes }, lane))
}

function queueMeasures({ gauge }: MetricsRegistry, { queues, catalogue }: MeasureDeps): Measure[] {
  const jobs = gauge('queue_jobs', 'Jobs in the queue of a kind.', { kind: [], state: [] })
  const oldest = gauge('queue_oldest_seconds', 'Age of the oldest waiting job.', { kind: [] })
  const failed = gauge('failed_jobs', 'Jobs in the failed set.', { kind: [] })
  const states = ['waiting', 'active', 'delayed'] as const
  const measureOf = (kind: string): Measure => ({
    ask: async () => {
      const [depth, oldestMs = 0, ended] = await Promise.all([
        queues.depth(kind),
        queues.oldestMs(kind),
        queues.depth(FAILED_QUEUE(kind)),
      ])
      return () => {
        for (const state of states) jobs.set({ kind, state }, depth[state])
        oldest.set({ kind }, oldestMs / 1000)
        failed.set({ kind }, ended.waiting)
      }
    },
    forget: () => {
      for (const state of states) jobs.remove({ kind, state })
      oldest.remove({ kind })
      failed.remove({ kind })
    },
  })
  // Those that somebody is called for come first.
  const isUrgent = (kind: string) => catalogue.entry(kind).urgent
  const { kinds } = catalogue
  return [...kinds.filter(isUrgent), ...kinds.filter(kind => !isUrgent(kind))].map(measureOf)
}

/** The outbox is first, because somebody is called for it. */
function storeMeasures({ gauge }: MetricsRegistry, { store, clock, beside, more }: MeasureDeps): Measure[] {
  const lockWait = gauge(
    'lock_wait_seconds',
    'How long the session has waited that waits longest for a lock of the store.',
  )
  const outboxRows = gauge('outbox_rows', 'Results that are not published yet.')
  const outboxOldest = gauge('outbox_oldest_seconds', 'Age of the oldest of them.')
  const batches = gauge('batches', 'Open batches, by state.', { state: [] })
  const promised = gauge('promised', 'Work accepted with 202 that is not answered yet.', { what: [] })
  const promisedOldest = gauge('promised_oldest_seconds', 'Age of the oldest of it.', { what: [] })
  const keyEnds = gauge('clients_near_key_end', 'Clients whose last live key ends within 14 days.')
  const age = ({ oldest }: Waiting) => (oldest === null ? 0 : Math.max(0, clock() - oldest) / 1000)

  function one<T>(read: (db: Db) => Promise<T>, set: (answer: T) => void, forgetSeries: () => void): Measure {
    // The server ends a statement that nobody waits for any more; else slow ones would pile up in the pool.
    const limited = (db: Db) => limitStatements(db, ASKED_MS_MAX).then(() => read(db))
    const ask = async () => {
      const answer = await store.transaction(limited)
      return () => set(answer)
    }
    return { ask, forget: forgetSeries }
  }
  const all = (...gauges: Gauge[]) => {
    return () => {
      for (const gauge of gauges) forget(gauge)
    }
  }
  const promise = (what: string, read: (db: Db) => Promise<Waiting>) =>
    one(
      read,
      waiting => {
        promised.set({ what }, waiting.rows)
        promisedOldest.set({ what }, age(waiting))
      },
      () => {
        promised.remove({ what })
        promisedOldest.remove({ what })
      },
    )

  const locks: Measure = {
    async ask() {
      const waitMs = await (beside ? longestWait(beside) : store.transaction(longestWait))
      return () => lockWait.set(waitMs / 1000)
    },
    forget: all(lockWait),
  }
  return [
    locks,
    one(
      outbox.pendingAnswers,
      unpublished => {
        outboxRows.set(unpublished.reduce((sum, { rows }) => sum + rows, 0))
        outboxOldest.set(age({ rows: 0, oldest: unpublished[0]?.oldest ?? null }))
      },
      all(outboxRows, outboxOldest),
    ),
    one(
      db => batchCounts.countOpen(db, Date.now()),
      open => {
        for (const { state, batches: n } of open) batches.set({ state }, n)
      },
      all(batches),
    ),
    promise('operation', operations.measure),
    promise('chunk', chunks.measure),
    ...more.flatMap(open => open({ gauge, clock, one, all, age })),
    one(
      db => clientUsers.listWithoutKeyAfter(db, clock() + KEY_END_MS),
      ending => keyEnds.set(ending.length),
      all(keyEnds),
    ),
  ]
}
