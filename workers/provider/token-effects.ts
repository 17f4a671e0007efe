// What a change of a token means for its scheme token, recorded in the transaction of the change: a new token gets one, a
// deleted token's is deleted, and a new card gets one in place of the old card's. The network is called after the commit.
import { setTimeout as pause } from 'node:timers/promises'
import { provisionId } from '../../src/job/envelope/ids.ts'
import type { Secret } from '../../src/secret.ts'
import type { Scope } from '../../src/store/access/scopes.ts'
import * as scopes from '../../src/store/access/scopes.ts'
import type { Db } from '../../src/store/pool.ts'
import type { NewScheme, StoredScheme } from '../../src/store/provider/scheme-row.ts'
import * as schemeTokens from '../../src/store/provider/scheme-tokens.ts'
import * as storedSchemes from '../../src/store/provider/stored-schemes.ts'
import type { StoredToken } from '../../src/store/token/tokens.ts'
import { isLive, isSupported, type ShownScheme } from '../../src/token/scheme.ts'
import type { Deps } from '../deps.ts'
import type { Success } from '../line/work.ts'
import type { JobIds } from './action-rules.ts'
import { openLease } from './lease.ts'
import { cardOf, pendingRow, storedCard } from './pending-card.ts'
import { reconcileRow } from './reconcile/reconcile-row.ts'
import { shownScheme } from './view.ts'

type EffectDeps = Pick<Deps, 'ring' | 'clock' | 'providers'>

/** The scheme tokens that new tokens get because their scope says so, to be saved with the tokens. */
export function firstSchemes(
  made: readonly { token: StoredToken; pan: Secret; scope: Scope }[],
  job: JobIds,
  deps: EffectDeps,
): NewScheme[] {
  return made.flatMap(({ token, pan, scope }) => {
    const card = scope.autoProvision && isSupported(scope) && token.sealed ? cardOf(pan, token) : undefined
    const network = deps.providers?.schemes.network(token.brand ?? '')
    if (!card || !network) return []
    const id = provisionId(job.receiptId, token.tokenId, 0)
    const about = { provisionId: id, clientId: job.clientId, provider: network.name, background: true }
    return pendingRow(token, card, about, deps)
  })
}

/** For tokens that were deleted: their provisionings are deleted at the providers too, with repeats until each is confirmed. */
export function retire(db: Db, tokenIds: readonly string[], { clock }: Pick<Deps, 'clock'>): Promise<void> {
  return schemeTokens.retireOf(db, tokenIds, clock())
}

export interface Replacement {
  token: StoredToken
  scope: Scope
  action: 'ACTIVATE' | 'DELETE' | undefined
  job: JobIds
}

/**
 * For a token that stands for another card now: the old card's scheme token is deleted, and the new card gets one where
 * the old one was in use or to be, or `action` says so. Answers the provisionings that are to be reconciled.
 */
export async function replace(db: Db, { token, scope, action, job }: Replacement, deps: EffectDeps): Promise<string[]> {
  const [old] = await storedSchemes.holdCurrent(db, [token.tokenId])
  const isWanted = action === 'ACTIVATE' || (action === undefined && old !== undefined && isInUse(old))
  const retired = old && isLive(old) ? [old.provisionId] : []
  await schemeTokens.retireOf(db, [token.tokenId], deps.clock())
  const card = isWanted && isSupported(scope) ? storedCard(token, deps.ring) : undefined
  const network = deps.providers?.schemes.network(token.brand ?? '')
  if (!card || !network) return retired
  const counts = await storedSchemes.countOf(db, [token.tokenId])
  const id = provisionId(job.receiptId, token.tokenId, counts.get(token.tokenId) ?? 0)
  const about = { provisionId: id, clientId: job.clientId, provider: network.name, background: true }
  const newRow = pendingRow(token, card, about, deps)
  await schemeTokens.displace(db, [token.tokenId])
  await schemeTokens.insertAll(db, [newRow])
  return [...retired, id]
}

/** As `replace`, for a token that stands for its former card again. The loop does the rest. */
export async function replaceBack(db: Db, token: StoredToken, job: JobIds, deps: EffectDeps): Promise<void> {
  const scope = await scopes.find(db, token.tokenScope)
  if (scope) await replace(db, { token, scope, action: undefined, job }, deps)
}

function isInUse(row: StoredScheme): boolean {
  if (!isLive(row)) return false
  return row.state === 'ACTIVE' || (row.state === 'PENDING' && (row.background || row.asked !== null))
}

/** An answer waits so long for a network; a later change is told by an event. */
const PATIENCE_MS = 2_500

/** Reconciles what was just committed. Resolves when that is done, or after `PATIENCE_MS`; never throws. */
export async function reconcileNow(provisionIds: readonly string[], deps: Deps): Promise<void> {
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
  // A change without an event must be in the answer: the answer is read after its transaction.
  await Promise.all(silent)
}

export interface View {
  tokenId: string
  scope: Scope
  render: (shown: ShownScheme | undefined) => Record<string, unknown>
}

/** As `reconcileNow`, then the answer with the scheme token as it is by then. */
export async function reconcileThenShow<S extends Success>(
  provisionIds: readonly string[],
  answer: S,
  { tokenId, scope, render }: View,
  deps: Deps,
): Promise<S> {
  await reconcileNow(provisionIds, deps)
  const record = await shownScheme(tokenId, scope, deps).then(render, () => answer.record)
  return { ...answer, record }
}
