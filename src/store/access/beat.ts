// The beat of a long-running process: it says every five seconds that it lives. What others make of a silence is theirs.
import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import type { Logger } from '../../log.ts'
import { every } from '../../recurring.ts'
import { readVersion } from '../../version.ts'
import { countConnectionsMax } from '../connection/connection.ts'
import type { Db } from '../pool.ts'
import * as processes from './processes.ts'

export const BEAT = {
  everyMs: 5_000,
  /** Silent for longer, a process is named as late: three beats are missing, and whoever died did so at most this long ago. */
  lateMs: 12_000,
  /** Silent for longer, a process counts as dead: nobody relies on it any more. */
  deadMs: 30_000,
  /** The row of a dead process stays as long as this, so that somebody can be told which one died. */
  keptMs: 3_600_000,
} as const

type Beating = Pick<processes.NewProcess, 'role'> & Partial<Pick<processes.NewProcess, 'kinds' | 'features'>>

/** Makes this process known as alive before it returns; returns how to leave. */
export async function startBeat(
  { store, log }: { store: Db; log: Logger },
  { role, kinds = [], features = [] }: Beating,
): Promise<() => Promise<void>> {
  const known = { processId: randomUUID(), role, host: hostname(), version: readVersion(), kinds, features }
  const own = { ...known, connections: countConnectionsMax() }
  await processes.see(store, own)
  const stop = every(BEAT.everyMs, () => processes.see(store, own), { log })
  return async () => {
    await stop()
    await processes.leave(store, own.processId)
  }
}
