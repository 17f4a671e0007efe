// The supervisor of worker processes, as `workers` and `start` run it: the processes, and their metrics on one port.
import { ConfigError } from '../../src/config.ts'
import { openHealth } from '../../src/health.ts'
import { CATALOGUE } from '../../src/job/composition.ts'
import { openRegistry } from '../../src/metrics.ts'
import { openOps, portOf } from '../../src/ops.ts'
import { jwksOf } from '../../src/vault/key-statement.ts'
import { countProcesses, type SuperviseOptions, supervise, WorkerEnded } from '../../workers/process/supervise.ts'
import { CONCURRENCY, kindsOf, WORKER_ROLES } from '../../workers/process/worker-settings.ts'
import { Stop } from '../exit.ts'
import { connectionsOf, poolsOf, warnOfConnections } from '../open/connections.ts'
import { findOwnKeys } from '../open/installation-key.ts'
import { follow } from '../open/key-ring.ts'
import { openVault, type Session, withQueues } from '../open/open.ts'
import { NO_REPORTS } from '../open/report-files.ts'
import { WORKER_SCRIPT } from './local-workers.ts'

export interface WorkersOptions {
  kinds?: readonly string[] | undefined
  concurrency?: number | undefined
}

/** A running role that may end without a signal. */
export interface Running {
  failed: Promise<Stop>
}

/** The connections of the supervisor and all its processes, without cells. */
export function planWorkers(
  session: Pick<Session, 'config'>,
  { kinds, concurrency, ...given }: WorkersOptions & Pick<SuperviseOptions, 'processes'>,
  cores?: number,
): number {
  const counts = countProcesses({ catalogue: CATALOGUE, kinds, ...given }, cores)
  const ofRoles = WORKER_ROLES.map(role => {
    const worker = { kinds: kindsOf(CATALOGUE, role, kinds).length, concurrency: concurrency ?? CONCURRENCY[role] }
    return counts[role] * connectionsOf(session, role, worker)
  })
  return ofRoles.reduce((sum, connections) => sum + connections, connectionsOf(session, 'workers'))
}

/** Resolves once every process works; they end with the session. */
export async function startWorkers(session: Session, { kinds, concurrency }: WorkersOptions): Promise<Running> {
  const { log, lifetime, config, terminal } = session
  // Checked here before the fork, so that an error is printed once and not by each child.
  const { store, ring, database } = await openVault(session, poolsOf(session, 'workers').store)
  follow({ ring, log, lifetime })
  if (config.reportsUrl === undefined && kinds?.join() === 'report') throw new ConfigError(NO_REPORTS)
  if (config.reportsUrl === undefined && kinds?.includes('report') !== false)
    log.warn('no reports are made on this host: REPORTS_URL is not set')
  const given = { kinds, concurrency, processes: config.processes }
  await warnOfConnections(session, { store, embedded: database.embedded }, planWorkers(session, given))
  const registry = openRegistry({ role: 'workers' })
  registry.collectProcess()
  const workers = supervise({
    log,
    catalogue: CATALOGUE,
    ...given,
    script: WORKER_SCRIPT,
    withQueues: work => withQueues(session, work),
    env: terminal.env,
    registry,
  })
  lifetime.onClose('workers', () => workers.close())
  const health = openHealth(registry, {})
  const ops = await openOps({
    host: config.httpHost,
    port: portOf('workers', config.metricsPort),
    reasons: workers.reasons,
    snapshots: async () => {
      const told = await workers.snapshots()
      return [...told, await health.snapshot()]
    },
    jwks: async () => jwksOf(await findOwnKeys(store, ring)),
  })
  lifetime.onClose('metrics', ops.close)
  await workers.ready.catch(error => {
    throw error instanceof WorkerEnded
      ? new Stop('a worker process could not start; its line above says why', error.code)
      : error
  })
  log.info({ opsPort: ops.port }, 'all worker processes work')
  const why = 'a worker process ended and could not be started again; its line above says why'
  return { failed: workers.ended.then(code => new Stop(why, code)) }
}
