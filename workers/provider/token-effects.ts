// What a change of tokens means for scheme tokens: the provisionings of new tokens, which are written with the tokens,
// and the calls to networks that follow the commit and for which the answer waits.
import { setTimeout as pause } from 'node:timers/promises'
import { provisionId } from '../../src/job/envelope/ids.ts'
import type { NewScheme } from '../../src/store/provider/scheme-row.ts'
import * as schemeTokens from '../../src/store/provider/scheme-tokens.ts'
import { isSupported } from '../../src/token/scheme.ts'
import type { JobIds, NewCard } from '../networks.ts'
import type { ProviderDeps } from './deps.ts'
import { openLease } from './lease.ts'
import { cardOf, pendingRow } from './pending-card.ts'
import { reconcileRow } from './reconcile/reconcile-row.ts'

type EffectDeps = Pick<ProviderDeps, 'ring' | 'clock' | 'providers'>

/** The provisionings of new tokens whose scope provisions automatically; they are saved with the tokens. */
export function firstSchemes(made: readonly NewCard[], job: JobIds, deps: EffectDeps): NewScheme[] {
  return made.flatMap(({ token, pan, scope }) => {
    const card = scope.autoProvision && isSupported(scope) && token.sealed ? cardOf(pan, token) : undefined
    const network = deps.providers?.schemes.network(token.brand ?? '')
    if (!card || !network) return []
    const id = provisionId(job.receiptId, token.tokenId, 0)
    const about = { provisionId: id, clientId: job.clientId, provider: network.name, background: true }
    return pendingRow(token, card, about, deps)
  })
}

/** How long an answer waits for a network; an event reports a later change. */
const PATIENCE_MS = 2_500

/**
 * Reconciles provisionings right after their commit. Resolves when that is done, or after `PATIENCE_MS`; never throws.
 */
export async function reconcileNow(provisionIds: readonly string[], deps: ProviderDeps): Promise<void> {
  if (!deps.providers || provisionIds.length === 0) return
  let isOver = false
  const silent: Promise<void>[] = []
  const isSilent = (ended: Promise<void>) => {
    if (!isOver) silent.push(ended)
    return !isOver
  }
  const lease = openLease(deps)
  const working = schemeTokens
    .take(deps.store, provisionIds, lease.id, deps.clock(), lease.until())
    .then(rows => Promise.all(rows.map(row => reconcileRow(row, lease.id, 'interactive', deps, { isSilent }))))
    .catch(error => deps.log.warn({ err: error }, 'scheme tokens are left to the loop'))
    .finally(lease.end)
  const over = new AbortController()
  const late = pause(PATIENCE_MS, undefined, { signal: over.signal }).catch(() => {})
  await Promise.race([working, late])
  over.abort()
  isOver = true
  // A change without an event must be in the answer, so the answer is read after that change's transaction.
  await Promise.all(silent)
}
