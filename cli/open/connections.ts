// The connections to PostgreSQL of a process with these settings, and the warning of a role that starts where PostgreSQL
// permits fewer than the processes may open. src/store/connection/plan.ts has the numbers.
import type { Config } from '../../src/config.ts'
import { describeError, type Logger } from '../../src/logger.ts'
import { BEAT } from '../../src/store/access/beat.ts'
import * as processes from '../../src/store/access/processes.ts'
import {
  countPlanned,
  findShortage,
  type PlannedProcess,
  type PlanSettings,
  type Pools,
  planConnections,
  planPools,
} from '../../src/store/connection/plan.ts'
import type { Store } from '../../src/store/pool.ts'
import * as storeServer from '../../src/store/server.ts'

interface Settings {
  config: Pick<Config, 'redisUrls'>
}

type WorkerPlan = Omit<PlanSettings, 'engine'>

const engineOf = ({ config }: Settings) => (config.redisUrls ? 'redis' : 'postgres')

/** The pools that a process makes. */
export function poolsOf(settings: Settings, process: PlannedProcess, worker: WorkerPlan = {}): Pools {
  return planPools(process, { engine: engineOf(settings), ...worker })
}

/** All connections of such a process. */
export function connectionsOf(settings: Settings, process: PlannedProcess, worker: WorkerPlan = {}): number {
  return planConnections(process, { engine: engineOf(settings), ...worker })
}

/**
 * Logs one line if PostgreSQL permits fewer connections than the running processes and this role, which needs `own`, may
 * open together. The role goes on: most pools are seldom full. The embedded server suffices for all.
 */
export async function warnOfConnections(
  { log }: { log: Logger },
  { store, embedded }: { store: Store; embedded: boolean },
  own: number,
): Promise<void> {
  if (embedded) return
  try {
    const [running, login] = await Promise.all([
      processes.listPlanned(store, BEAT.deadMs),
      storeServer.readLogin(store),
    ])
    const counted = countPlanned(running)
    const connections = counted.connections + own
    const byUser = new Map(counted.byUser).set(login, (counted.byUser.get(login) ?? 0) + own)
    const limits = await storeServer.readConnectionLimits(store, [login])
    const short = findShortage({ connections, byUser }, limits)
    if (short)
      log.warn(
        `this process and those that run may open ${connections} connections to PostgreSQL, but ${short.admits}: ${short.next}`,
      )
  } catch (error) {
    log.warn({ error: describeError(error) }, 'the connections that PostgreSQL permits could not be read')
  }
}
