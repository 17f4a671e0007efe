// What follows for scheme tokens from what happened to tokens, in the transaction in which it happened: a new token
// gets one, a deleted token's goes, a new card's replaces the old card's. The network is asked after the commit.
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
import { openLease } from './lease.ts'
import { cardOf, storedCard } from './pending-card.ts'
import { drive } from './reconcile/reconcile-row.ts'
import { pendingRow } from './record-intents.ts'
import { shownScheme } from './view.ts'

type FollowDeps = Pick<Deps, 'ring' | 'clock' | 'outside'>

/** Whose doing it is. */
export interface Doer {
  receiptId: string
  clientId: string
}

/** The scheme tokens that new tokens of a scope get by themselves, to be saved with them. */
export function firstSchemes(
  made: readonly { token: StoredToken; pan: Secret; scope: Scope }[],
  doer: Doer,
  deps: FollowDeps,
): NewScheme[] {
  return made.flatMap(({ token, pan, scope }) => {
    const card = scope.autoProvision && isSupported(scope) && token.sealed ? cardOf(pan, token) : undefined
    const network = deps.outside?.schemes.network(token.brand ?? '')
    if (!card || !network) return []
    const id = provisionId(doer.receiptId, token.tokenId, 0)
    return pendingRow(token, card, { ...doer, provisionId: id, provider: network.name, background: true }, deps)
  })
}

/** Tokens were deleted: what they have at networks goes too, and is asked for until it is confirmed. */
export function retire(db: Db, tokenIds: readonly string[], { clock }: Pick<Deps, 'clock'>): Promise<void> {
  return schemeTokens.retireOf(db, tokenIds, clock())
}

/**
 * A token stands for another card now: the old card's scheme token goes, and the new one gets its own where the old was
 * in use or to be, or `wish` says so. Answers the provisionings that are to be worked.
 */
export async function replace(
  db: Db,
  token: StoredToken,
  scope: Scope,
  wish: 'ACTIVATE' | 'DELETE' | undefined,
  doer: Doer,
  deps: FollowDeps,
): Promise<string[]> {
  const [old] = await storedSchemes.holdCurrent(db, [token.tokenId])
  const isWanted = wish === 'ACTIVATE' || (wish === undefined && old !== undefined && isInUse(old))
  const going = old && isLive(old) ? [old.provisionId] : []
  await schemeTokens.retireOf(db, [token.tokenId], deps.clock())
  const card = isWanted && isSupported(scope) ? storedCard(token, deps.ring) : undefined
  const network = deps.outside?.schemes.network(token.brand ?? '')
  if (!card || !network) return going
  const counts = await storedSchemes.countOf(db, [token.tokenId])
  const id = provisionId(doer.receiptId, token.tokenId, counts.get(token.tokenId) ?? 0)
  const fresh = pendingRow(token, card, { ...doer, provisionId: id, provider: network.name, background: true }, deps)
  await schemeTokens.displace(db, [token.tokenId])
  await schemeTokens.insertAll(db, [fresh])
  return [...going, id]
}

/** As `replace`, for a token that stands for its former card again. The loop works it. */
export async function replaceBack(db: Db, token: StoredToken, doer: Doer, deps: FollowDeps): Promise<void> {
  const scope = await scopes.find(db, token.tokenScope)
  if (scope) await replace(db, token, scope, undefined, doer, deps)
}

function isInUse(row: StoredScheme): boolean {
  if (!isLive(row)) return false
  return row.state === 'ACTIVE' || (row.state === 'PENDING' && (row.background || row.asked !== null))
}

/** How long an answer waits for a network; what takes longer is gone on with, and told by an event. */
const PATIENCE_MS = 2_500

/** Works what was just committed. Resolves when it is done, or patience ends; never throws. */
export async function workNow(provisionIds: readonly string[], deps: Deps): Promise<void> {
  if (!deps.outside || provisionIds.length === 0) return
  let isOver = false
  const quiet: Promise<void>[] = []
  const isQuiet = (ended: Promise<void>) => {
    if (!isOver) quiet.push(ended)
    return !isOver
  }
  const lease = openLease(deps)
  const working = schemeTokens
    .take(deps.store, provisionIds, lease.id, deps.clock(), lease.until())
    .then(rows => Promise.all(rows.map(row => drive(row, lease.id, 'interactive', deps, { isQuiet }))))
    .catch(error => deps.log.warn({ err: error }, 'scheme tokens are left to the loop'))
    .finally(lease.end)
  const over = new AbortController()
  const late = pause(PATIENCE_MS, undefined, { signal: over.signal }).catch(() => {})
  await Promise.race([working, late])
  over.abort()
  isOver = true
  // What found it quiet tells nobody by an event: the answer is made of what it has written.
  await Promise.all(quiet)
}

/** As `workNow`, then the answer with the scheme token as it is by then. */
export async function workThenShow<S extends Success>(
  provisionIds: readonly string[],
  settled: S,
  tokenId: string,
  scope: Scope,
  render: (shown: ShownScheme | undefined) => Record<string, unknown>,
  deps: Deps,
): Promise<S> {
  await workNow(provisionIds, deps)
  const record = await shownScheme(tokenId, scope, deps).then(render, () => settled.record)
  return { ...settled, record }
}
