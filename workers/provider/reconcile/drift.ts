// Records differences between store and network: counts them, logs them, and writes audit rows for the operator.
import * as audits from '../../../src/store/access/audits.ts'
import type { Db } from '../../../src/store/pool.ts'
import type { Deps } from '../../deps.ts'

interface Drift {
  /**
   * `state`, `data`: the store took the network's value. `orphan`: a comparison found a token at the network that the
   * store doesn't know. `unknown`: a notification named such a token. `missing`: the network doesn't know a token of
   * the store; it may belong to a network that was set up before, so its row stays as it is.
   */
  what: 'state' | 'data' | 'orphan' | 'unknown' | 'missing'
  provider: string
  reference: string | null
  provisionId?: string
}

export async function noteDrift(
  db: Db,
  { what, provider, reference, provisionId }: Drift,
  { metrics, log }: Pick<Deps, 'metrics' | 'log'>,
): Promise<void> {
  metrics.schemeDrift.inc({ what })
  log.warn({ what, provider, reference, provision: provisionId }, 'store and network differed')
  const detail = { what, provider, ...(provisionId === undefined ? {} : { provision: provisionId }) }
  await audits.insert(db, { actor: 'worker', action: 'scheme.drift', subject: reference ?? provider, detail })
}
