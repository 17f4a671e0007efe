// Runs the scheduler: the schedule with its signing key and the keys that verify results, housekeeping, and the metrics
// of what waits in the installation. `tokenmill schedule` changes the schedules.
import { startWatch } from '../../producers/operate/watch.ts'
import type { ScheduleDeps } from '../../producers/schedule/deps.ts'
import { openScheduleMetrics } from '../../producers/schedule/metrics.ts'
import { openSchedule } from '../../producers/schedule/open.ts'
import { systemClock } from '../../src/clock.ts'
import { ConfigError } from '../../src/config.ts'
import { openHealth } from '../../src/health.ts'
import { CATALOGUE } from '../../src/job/composition.ts'
import { openRegistry } from '../../src/metrics.ts'
import { openOwnOps, portOf } from '../../src/ops.ts'
import { readRedisInfo } from '../../src/queue/redis-info.ts'
import { startBeat } from '../../src/store/access/beat.ts'
import * as clients from '../../src/store/access/clients.ts'
import * as installation from '../../src/store/installation.ts'
import { openStore } from '../../src/store/pool.ts'
import * as storeServer from '../../src/store/server.ts'
import { openUngrantedCounter, type UngrantedCounter } from '../../src/vault/ring/ungranted.ts'
import { startHousekeeping } from '../../workers/process/housekeeping.ts'
import { openInstallationMetrics } from '../../workers/process/installation-metrics.ts'
import { MEASURES, openChores } from '../../workers/scheduled.ts'
import { connectionsOf, poolsOf, warnOfConnections } from '../open/connections.ts'
import { openCommandStore, openQueues, type Session } from '../open/open.ts'
import { followSigningKeys } from '../open/pinned-keys.ts'
import { findReportFiles } from '../open/report-files.ts'
import { readSystemKey } from '../open/system-clients.ts'

/**
 * One page of an expiry sweep is a few seconds of work for a worker process, and a few hundred kilobytes in the queue.
 */
const SWEEP_PAGE = 500
/** Much longer than an attempt may take. */
const WEBHOOK_LEASE_MS = 60_000

/** Starts the scheduler. It runs until the session ends. */
export async function startScheduler(session: Session): Promise<void> {
  const { log, lifetime, config } = session
  const pools = poolsOf(session, 'scheduler')
  const { store, database } = await openCommandStore(session, pools.store)
  await warnOfConnections(session, { store, embedded: database.embedded }, connectionsOf(session, 'scheduler'))
  const queues = await openQueues(session, database, pools.queues)
  const deps = { store, queues, log, clock: systemClock, catalogue: CATALOGUE }
  const files = findReportFiles(session)
  if (!files) log.warn('old reports are not removed by this host: REPORTS_URL is not set')
  lifetime.onClose('housekeeping', startHousekeeping(deps, openChores(files), config))
  const registry = openRegistry({ role: 'scheduler' })
  registry.collectProcess()
  const beside = openStore(database.url, { log, connectionsMax: pools.beside, application: 'tokenmill scheduler' })
  lifetime.onClose('locks', beside.close)
  const collect = openInstallationMetrics(registry, { ...deps, beside, more: MEASURES })
  let own: StartedSchedule = { aheadMs: () => 0, reasons: () => [] }
  const health = openHealth(registry, {
    store: storeServer.watched(store),
    queue: queues,
    collect,
    clock: { aheadMs: () => own.aheadMs() },
    others: async () => own.reasons(),
  })
  const ops = await openOwnOps(health, { host: config.httpHost, port: portOf('scheduler', config.metricsPort) })
  lifetime.onClose('metrics', ops.close)
  own = await startSchedule(session, {
    ...deps,
    metrics: openScheduleMetrics(registry),
    ungranted: openUngrantedCounter(registry),
  })
  const { redisUrls, scheduleLateMs } = config
  const redis = redisUrls && (() => readRedisInfo(redisUrls))
  lifetime.onClose('watch', startWatch({ ...deps, redis, scheduleLateMs }))
  log.info({ opsPort: ops.port }, 'scheduling')
}

interface StartedSchedule {
  /** How far the clock of the host is ahead of the store's, in ms. */
  aheadMs(): number
  /** Why it can't read results. */
  reasons(): string[]
}

export async function startSchedule(
  session: Session,
  opened: Pick<ScheduleDeps, 'store' | 'queues' | 'clock' | 'log' | 'metrics'> & { ungranted: UngrantedCounter },
): Promise<StartedSchedule> {
  const { config, lifetime } = session
  const signingKey = await readSystemKey(config.dataDir, 'scheduler')
  const own = await clients.find(opened.store, 'scheduler')
  if (!own) throw new ConfigError(installation.INCOMPLETE)
  // A host whose clock is fast would ask for the report of a day that has not ended.
  const { clock, aheadMs, stop } = await storeServer.openStoreClock(opened.store, opened.clock, opened)
  lifetime.onClose('clock', stop)
  const trusted = await followSigningKeys(session, opened)
  const schedule = openSchedule({
    ...opened,
    clock,
    signingKey,
    userId: own.userId,
    trusted,
    settings: {
      audience: config.audience,
      lateMs: config.scheduleLateMs,
      keepDays: config.reportDays,
      sweepPage: SWEEP_PAGE,
      webhookLeaseMs: WEBHOOK_LEASE_MS,
    },
  })
  lifetime.onClose('schedule', schedule.close)
  await schedule.ready
  lifetime.onClose('beat', await startBeat(opened, { role: 'scheduler' }))
  return { aheadMs, reasons: trusted.reasons }
}
