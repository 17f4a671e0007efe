// Opens what a worker process needs to call card networks and third parties: the providers of the scheme file, the
// process's share of their rate limits, and the key that signs reversals. Without a scheme file there are no providers.

import { openSchemes } from '../../src/scheme/open.ts'
import type { Store } from '../../src/store/pool.ts'
import type { WorkerMetrics } from '../../workers/metrics/metrics.ts'
import type { WorkerSettings } from '../../workers/process/worker-settings.ts'
import type { Providers } from '../../workers/provider/deps.ts'
import { openShares } from '../../workers/provider/rate-shares.ts'
import type { Session } from '../open/open.ts'
import { readSystemKey } from '../open/system-clients.ts'

/** Throws `ConfigError` if the scheme file, or the key of the system client `worker`, is wrong or missing. */
export async function openProviders(
  { config, log, lifetime }: Session,
  store: Store,
  metrics: WorkerMetrics,
  { role, place }: Pick<WorkerSettings, 'role' | 'place'>,
): Promise<Providers | undefined> {
  if (config.schemeFile === undefined) return undefined
  const signingKey = await readSystemKey(config.dataDir, 'worker')
  const { schemeFile: file, privateHosts } = config
  // A steady clock: an operator may change the wall clock, and pauses between calls must not change with it.
  const schemes = openSchemes({ file, privateHosts, log, clock: () => performance.now() })
  lifetime.onClose('scheme token networks', () => schemes.close())
  const shares = await openShares(schemes.rates, store, { place, interactive: role === 'interactive', log, metrics })
  lifetime.onClose('shares of scheme rates', shares.close)
  return { schemes, signingKey }
}
