// The names of all metrics that the product's processes show, without those of Node.
import { openConsoleMetrics } from '../../producers/console/metrics.ts'
import { openGatewayMetrics } from '../../producers/gateway/metrics.ts'
import { openThreeDsMetrics } from '../../producers/gateway/three-ds/metrics.ts'
import { openScheduleMetrics } from '../../producers/schedule/metrics.ts'
import { openHealth } from '../../src/health.ts'
import { CATALOGUE } from '../../src/job/composition.ts'
import { openRegistry, pageOf } from '../../src/metrics.ts'
import type { Store } from '../../src/store/pool.ts'
import { openTraceMetrics } from '../../src/trace/metrics.ts'
import { openKekMetrics } from '../../src/vault/kek/metrics.ts'
import { openWorkerMetrics } from '../../workers/metrics/metrics.ts'
import { openInstallationMetrics } from '../../workers/process/installation-metrics.ts'
import { openSupervisorMetrics } from '../../workers/process/supervise.ts'
import { MEASURES } from '../../workers/scheduled.ts'

/** Each set is opened in a separate registry, because both HTTP roles have some metrics. */
const SETS = [
  (registry: ReturnType<typeof openRegistry>) => openWorkerMetrics(registry, CATALOGUE),
  openConsoleMetrics,
  (registry: ReturnType<typeof openRegistry>) => openGatewayMetrics(registry, CATALOGUE.kinds),
  openThreeDsMetrics,
  openScheduleMetrics,
  openTraceMetrics,
  openKekMetrics,
  (registry: ReturnType<typeof openRegistry>) => openSupervisorMetrics(registry, []),
  (registry: ReturnType<typeof openRegistry>) => {
    const queues = { depth: async () => ({ waiting: 0, active: 0, delayed: 0, failed: 0 }), oldestMs: async () => 0 }
    openInstallationMetrics(registry, {
      store: {} as Store,
      queues,
      catalogue: CATALOGUE,
      clock: () => 0,
      more: MEASURES,
    })
    openHealth(registry, { store: { ping: async () => {}, connections: () => ({}), writableServers: () => 1 } })
  },
]

export async function metricNames(): Promise<string[]> {
  const pages = SETS.map(async open => {
    const registry = openRegistry({ role: 'docs' })
    open(registry)
    return pageOf([await registry.snapshot()])
  })
  const names = (await Promise.all(pages)).flatMap(page =>
    [...page.matchAll(/^# TYPE (\S+)/gm)].map(([, name = '']) => name),
  )
  return [...new Set(names)]
}
