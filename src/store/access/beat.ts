// The heartbeat of a long-running process: every five seconds it writes that it is alive. Readers decide what a missing
// heartbeat means.
import { randomUUID } from 'node:crypto'
import { availableParallelism, hostname, loadavg } from 'node:os'
import type { Logger } from '../../logger.ts'
import { every } from '../../recurring.ts'
import { readVersion } from '../../version.ts'
import { countConnectionsMax } from '../connection/connection.ts'
import type { Db } from '../pool.ts'
import type { WorkMinute } from '../watch/work-minutes.ts'
import * as processes from './processes.ts'

export const BEAT = {
  everyMs: 5_000,
  /** A process that was silent for longer is reported as late. Two heartbeats are missing then. */
  lateMs: 12_000,
  /** A process that was silent for longer counts as dead: nobody relies on it any more. */
  deadMs: 30_000,
  /** How long the row of a dead process stays, so that operators can see which process died. */
  keptMs: 3_600_000,
} as const

/** How many processes want each core that this one may use, over the last minute. */
function loadOfCore(): number {
  return (loadavg()[0] ?? 0) / availableParallelism()
}

interface Beating
  extends Pick<processes.NewProcess, 'role'>,
    Partial<Pick<processes.NewProcess, 'kinds' | 'features'>> {
  /** The keys of the vault that the process holds now (`NewProcess.keys`). */
  keys?: () => readonly string[]
  /** As `NewProcess.keyEpoch`, now. */
  keyEpoch?: () => number | null
  /** As `NewProcess.workMs`. */
  workMs?: () => number | null
  /** As `NewProcess.work`. */
  work?: () => readonly WorkMinute[]
  everyMs?: number | undefined
  processId?: string
}

/** Writes the first heartbeat before it resolves. Resolves to a function that ends the heartbeat. */
export async function startBeat(
  { store, log }: { store: Db; log: Logger },
  { role, kinds = [], features = [], keys = () => [], keyEpoch = () => null, workMs = () => null, ...more }: Beating,
): Promise<() => Promise<void>> {
  const { work = () => [], everyMs = BEAT.everyMs, processId = randomUUID() } = more
  const known = { processId, role, host: hostname(), version: readVersion(), kinds, features }
  const own = { ...known, connections: countConnectionsMax() }
  const load = () => (kinds.length > 0 ? { load: loadOfCore() } : {})
  const see = () =>
    processes.see(store, {
      ...own,
      keys: keys(),
      keyEpoch: keyEpoch(),
      workMs: workMs(),
      work: work(),
      ...load(),
    })
  await see()
  const stop = every(everyMs, see, { log })
  return async () => {
    await stop()
    await processes.leave(store, own)
  }
}
