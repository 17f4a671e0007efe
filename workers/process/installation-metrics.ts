// What waits in the store and the queues of the whole installation, for the scheduler's /metrics. The figures are
// measured on request, at most every ten seconds: counting is expensive on the PostgreSQL engine.
import { listDueLines } from '../../src/acts/capture-turning.ts'
import { listExpiring } from '../../src/acts/key/expiring-keys.ts'
import type { Clock } from '../../src/clock.ts'
import { measureOrForget } from '../../src/health.ts'
import { FAILED_QUEUE, KINDS } from '../../src/job/catalogue.ts'
import type { MetricsRegistry } from '../../src/metrics.ts'
import type { Queues } from '../../src/queue/engine.ts'
import * as auditChain from '../../src/store/access/audit-chain.ts'
import * as clientUsers from '../../src/store/access/client-users.ts'
import * as batchCounts from '../../src/store/batch/batch-counts.ts'
import * as chunks from '../../src/store/batch/intake-chunks.ts'
import * as deliveries from '../../src/store/event/deliveries.ts'
import * as endpoints from '../../src/store/event/endpoints.ts'
import * as operations from '../../src/store/job/operations.ts'
import * as outbox from '../../src/store/job/outbox.ts'
import type { Store } from '../../src/store/pool.ts'
import * as intents from '../../src/store/provider/scheme-intents.ts'
import * as storedSchemes from '../../src/store/provider/stored-schemes.ts'

interface MeasureDeps {
  store: Store
  queues: Pick<Queues, 'depth' | 'oldestMs'>
  clock: Clock
}

const KEPT_MS = 10_000
const KEY_END_MS = 14 * 86_400_000

/** Opens the gauges. Returns the function that measures them; it doesn't throw. */
export function openInstallationMetrics(registry: MetricsRegistry, deps: MeasureDeps): () => Promise<void> {
  const measures = [measureQueues(registry, deps), measureStore(registry, deps)]
  let measuredAt = Number.NEGATIVE_INFINITY
  let measuring: Promise<unknown> | undefined
  return async () => {
    if (deps.clock() - measuredAt < KEPT_MS) return
    measuring ??= Promise.all(measures.map(measure => measure())).finally(() => {
      measuredAt = deps.clock()
      measuring = undefined
    })
    await measuring
  }
}

function measureQueues({ gauge }: MetricsRegistry, { queues }: MeasureDeps): () => Promise<void> {
  const jobs = gauge('queue_jobs', 'Jobs in the queue of a kind.', { kind: [], state: [] })
  const oldest = gauge('queue_oldest_seconds', 'Age of the oldest waiting job.', { kind: [] })
  const failed = gauge('failed_jobs', 'Jobs in the failed set.', { kind: [] })
  return () =>
    measureOrForget([jobs, oldest, failed], async () => {
      for (const kind of KINDS) {
        const [depth, oldestMs = 0, ended] = await Promise.all([
          queues.depth(kind),
          queues.oldestMs(kind),
          queues.depth(FAILED_QUEUE(kind)),
        ])
        for (const state of ['waiting', 'active', 'delayed'] as const) jobs.set({ kind, state }, depth[state])
        oldest.set({ kind }, oldestMs / 1000)
        failed.set({ kind }, ended.waiting)
      }
    })
}

interface Waiting {
  rows: number
  /** ms since the epoch. */
  oldest: number | null
}

function measureStore({ gauge }: MetricsRegistry, { store, clock }: MeasureDeps): () => Promise<void> {
  const outboxRows = gauge('outbox_rows', 'Results that are not published yet.')
  const outboxOldest = gauge('outbox_oldest_seconds', 'Age of the oldest of them.')
  const batches = gauge('batches', 'Open batches, by state.', { state: [] })
  const promised = gauge('promised', 'Work accepted with 202 that is not answered yet.', { what: [] })
  const promisedOldest = gauge('promised_oldest_seconds', 'Age of the oldest of it.', { what: [] })
  const schemeOpen = gauge('scheme_open', 'Scheme tokens with an outstanding call to the network.', { what: [] })
  const schemeOldest = gauge('scheme_open_oldest_seconds', 'Age of the oldest of them.', { what: [] })
  const webhooks = gauge('webhook_deliveries', 'Deliveries to URLs that are not made yet.')
  const webhooksOldest = gauge('webhook_due_oldest_seconds', 'Time since the oldest of them became due.')
  const endpointsTroubled = gauge('webhook_endpoints_troubled', 'Endpoints of webhooks that do not take them.', {
    state: ['disabled', 'failing'],
  })
  const segmentAge = gauge('audit_segment_age_seconds', 'Time since the last segment of the audit left the store.')
  const captureInUse = gauge(
    'capture_keys_in_use',
    'Capture keys that do not turn by themselves as they should: replaced and still used, or due in a line that is full.',
  )
  const keyEnds = gauge('clients_near_key_end', 'Clients whose last live key ends within 14 days.')
  const expiring = gauge('keys_expiring', 'Keys that should be replaced: within 30 days, or already.', {
    stage: ['soon', 'over'],
  })
  const age = ({ oldest }: Waiting) => (oldest === null ? 0 : Math.max(0, clock() - oldest) / 1000)

  return () =>
    measureOrForget(
      [
        ...[outboxRows, outboxOldest, batches, promised, promisedOldest, schemeOpen, schemeOldest, keyEnds],
        ...[webhooks, webhooksOldest, endpointsTroubled, segmentAge, captureInUse, expiring],
      ],
      async () => {
        const unpublished = await outbox.pendingAnswers(store)
        outboxRows.set(unpublished.reduce((sum, { rows }) => sum + rows, 0))
        outboxOldest.set(age({ rows: 0, oldest: unpublished[0]?.oldest ?? null }))
        for (const { state, batches: n } of await batchCounts.countOpen(store, Date.now())) batches.set({ state }, n)
        const accepted = { operation: await operations.measure(store), chunk: await chunks.measure(store) }
        for (const [what, waiting] of Object.entries(accepted)) {
          promised.set({ what }, waiting.rows)
          promisedOldest.set({ what }, age(waiting))
        }
        for (const [what, waiting] of await measureSchemes(store)) {
          schemeOpen.set({ what }, waiting.rows)
          schemeOldest.set({ what }, age(waiting))
        }
        const deliveriesLeft = await deliveries.measure(store)
        webhooks.set(deliveriesLeft.rows)
        webhooksOldest.set(age(deliveriesLeft))
        const failedSince = clock() - endpoints.TROUBLE.failedMs
        const troubled = await endpoints.listTroubled(store, { ...endpoints.TROUBLE, failedSince })
        for (const state of ['disabled', 'failing'] as const)
          endpointsTroubled.set({ state }, troubled.filter(one => one.state === state).length)
        segmentAge.set(Math.max(0, (await auditChain.find(store)).sentMs) / 1000)
        const { inUse, full } = await listDueLines(store, clock())
        captureInUse.set(inUse.length + full.length)
        const keys = await listExpiring(store, clock())
        expiring.set({ stage: 'soon' }, keys.filter(({ stage }) => stage === 'SOON').length)
        expiring.set({ stage: 'over' }, keys.filter(({ stage }) => stage === 'OVER').length)
        keyEnds.set((await clientUsers.listWithoutKeyAfter(store, clock() + KEY_END_MS)).length)
      },
    )
}

async function measureSchemes(store: Store): Promise<(readonly [string, Waiting])[]> {
  const open = await storedSchemes.countOpen(store)
  const owed = await intents.countOwed(store)
  const calls = (['provision', 'delete', 'ask'] as const).map(
    what => [what, open.find(count => count.what === what) ?? { rows: 0, oldest: null }] as const,
  )
  return [...calls, ['reversal', owed]]
}
