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

/** A token that is still missing is told again after so long, in ms. */
const TOLD_AGAIN_MS = 30 * 86_400_000

export async function noteDrift(
  db: Db,
  { what, provider, reference, provisionId }: Drift,
  { metrics, log, clock }: Pick<Deps, 'metrics' | 'log' | 'clock'>,
): Promise<void> {
  metrics.schemeDrift.inc({ what })
  const drift = { action: 'scheme.drift', subject: reference ?? provider }
  // A missing token is looked for each hour: telling it each time would bury all other rows.
  if (what === 'missing' && (await audits.wasWritten(db, { ...drift, detail: { what } }, clock() - TOLD_AGAIN_MS)))
    return
  log.warn({ what, provider, reference, provision: provisionId }, 'store and network differed')
  const detail = { what, provider, ...(provisionId === undefined ? {} : { provision: provisionId }) }
  await audits.insert(db, { actor: 'worker', ...drift, detail })
}
