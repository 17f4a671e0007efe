// What a worker process needs to speak to scheme token networks: those of the scheme file, its share of their rates, and
// the key that reversals are signed with. Without a scheme file there is nothing outside.

import type { Metrics } from '../../src/metrics.ts'
import { openSchemes } from '../../src/scheme/open.ts'
import type { Store } from '../../src/store/pool.ts'
import type { Providers } from '../../workers/deps.ts'
import type { WorkerSettings } from '../../workers/process/worker-settings.ts'
import { openShares } from '../../workers/provider/rate-shares.ts'
import type { Session } from '../open/open.ts'
import { readSystemKey } from '../open/system-clients.ts'

/** Throws `ConfigError` where the scheme file, or the key of the system client `worker`, is wrong or absent. */
export async function openProviders(
  { config, log, lifetime }: Session,
  store: Store,
  metrics: Metrics,
  { role, place }: Pick<WorkerSettings, 'role' | 'place'>,
): Promise<Providers | undefined> {
  if (config.schemeFile === undefined) return undefined
  const signingKey = await readSystemKey(config.dataDir, 'worker')
  const { schemeFile: file, privateHosts } = config
  // Paces and rests are spans of time: a wall clock that is set must not stretch them.
  const schemes = openSchemes({ file, privateHosts, log, clock: () => performance.now() })
  lifetime.onClose('scheme token networks', () => schemes.close())
  const shares = await openShares(schemes.rates, store, { place, interactive: role === 'interactive', log, metrics })
  lifetime.onClose('shares of scheme rates', shares.close)
  return { schemes, signingKey }
}
