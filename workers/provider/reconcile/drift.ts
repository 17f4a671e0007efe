// Differences between store and network: counted, said, and kept as audit rows for the operator.
import * as audits from '../../../src/store/access/audits.ts'
import type { Db } from '../../../src/store/pool.ts'
import type { Deps } from '../../deps.ts'

interface Drift {
  /**
   * `state`, `data`: the store followed. `orphan`, `unknown`: a token there that isn't known here. `missing`: one of ours
   * that isn't known there, which may be another network's than the one that is set up: it is left as it is.
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
