// What a worker process needs to speak to scheme token networks: those of the scheme file, its part of their rates, and
// the key that reversals are signed with. Without a scheme file there is nothing outside.
import { availableParallelism } from 'node:os'
import type { Outside } from '../../workers/deps.ts'
import type { WorkerRole } from '../../workers/main.ts'
import { systemClock } from '../clock.ts'
import { openSchemes } from '../scheme/open.ts'
import type { Session } from './open.ts'
import { readSystemKey } from './system-clients.ts'

/** The interactive process's part of a granted rate; bulk processes share the rest. */
const INTERACTIVE_SHARE = 0.04

/** Throws `ConfigError` where the scheme file, or the key of the system client `worker`, is wrong or absent. */
export async function openOutside({ config, log, lifetime }: Session, role: WorkerRole): Promise<Outside | undefined> {
  if (config.schemeFile === undefined) return undefined
  const signingKey = await readSystemKey(config.dataDir, 'worker')
  const processes = config.processes ?? availableParallelism()
  const share = role === 'interactive' ? INTERACTIVE_SHARE : (1 - INTERACTIVE_SHARE) / processes
  const { schemeFile: file, privateHosts } = config
  const schemes = openSchemes({ file, privateHosts, log, clock: systemClock, share })
  lifetime.onClose('scheme token networks', () => schemes.close())
  return { schemes, signingKey }
}
