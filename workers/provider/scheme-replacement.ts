// Decides what happens to a token's scheme token when the token is linked to another card. The former card's scheme
// token is retired. The new card gets the one that the job has had made for it (relink-actions.ts), or else a
// fresh one if the former was in use or about to be; none if the request deletes it, or no network is set up for the
// card. The line writes the decision; for a fresh one the provider is called after the commit.
import { type Refusal, refuse } from '../../src/errors.ts'
import { provisionId } from '../../src/job/envelope/ids.ts'
import type { Scope } from '../../src/store/access/scopes.ts'
import type { Db } from '../../src/store/pool.ts'
import type { NewScheme, StoredScheme } from '../../src/store/provider/scheme-row.ts'
import * as storedSchemes from '../../src/store/provider/stored-schemes.ts'
import { isLive, isSupported, type SchemeAction } from '../../src/token/scheme.ts'
import type { TokenRow } from '../../src/token/token.ts'
import type { Deps } from '../deps.ts'
import { type JobIds, type LinkedToken, SCHEME_FIELD } from '../networks.ts'
import type { ProviderDeps } from './deps.ts'
import { pendingRow, storedCard } from './pending-card.ts'

/** A linked token whose scope is known. */
export interface Relinked extends LinkedToken {
  scope: Scope
}

/** The former card's scheme token is retired, and perhaps the new card gets one. */
export interface Replacement {
  tokenId: string
  /** The current provisioning as it was read. If another one is current at the write, the decision is made again. */
  former: FormerScheme | undefined
  /** The provisioning of the new card. */
  fresh: NewScheme | undefined
  /** The provisioning that the job has had made for the new card; absent if it asked for none. */
  made?: string | undefined
}

export interface FormerScheme {
  provisionId: string
  /** The provider has the token, or may have it. */
  isLive: boolean
  /** The scheme token was in use, or was to be. */
  isInUse: boolean
}

type ReplacementDeps = Pick<ProviderDeps, 'ring' | 'clock' | 'providers'>

/** The refusal of an action that can't be done for the new card, known before a network is called. */
export function relinkRefusal(
  action: SchemeAction | undefined,
  row: TokenRow,
  { providers }: Pick<ProviderDeps, 'providers'>,
): Refusal | undefined {
  // The old card's scheme token is retired, and the new card has none yet.
  if (action === 'SUSPEND') return refuse('scheme_token_absent', SCHEME_FIELD)
  if (action !== 'ACTIVATE') return undefined
  if (!providers?.schemes.network(row.brand ?? '')) return refuse('scheme_action_unavailable', SCHEME_FIELD)
  // No network makes a token for a card without its date.
  return row.expiryYear === null ? refuse('field_required', 'body.expiry_year') : undefined
}

/** The linked tokens whose scope supports scheme tokens and that aren't deleted. */
export async function relinkedOf(
  db: Db,
  linked: readonly LinkedToken[],
  { directory }: Pick<Deps, 'directory'>,
): Promise<Relinked[]> {
  // A chunk reads them from the store: another process may have made a scheme token after the directory last read this scope, and it
  // would stay although its card is gone.
  const read = new Map<string, Promise<Scope | undefined>>()
  const relinked: Relinked[] = []
  for (const { token, scope: known, action, made } of linked) {
    if (token.status === 'DELETED') continue
    const reading = known ? undefined : (read.get(token.tokenScope) ?? directory.scopeIn(db, token.tokenScope))
    if (reading) read.set(token.tokenScope, reading)
    const scope = known ?? (await reading)
    if (scope && isSupported(scope)) relinked.push({ token, scope, action, made })
  }
  return relinked
}

/**
 * One decision per token, in the same order. Rows are read without locks: effect.ts finds out whether they have changed
 * since.
 */
export async function findReplacements(
  db: Db,
  relinked: readonly Relinked[],
  job: JobIds,
  deps: ReplacementDeps,
): Promise<Replacement[]> {
  if (relinked.length === 0) return []
  const ids = relinked.map(({ token }) => token.tokenId)
  const [rows, counts] = await Promise.all([storedSchemes.findCurrent(db, ids), storedSchemes.countOf(db, ids)])
  const current = new Map(rows.map(row => [row.tokenId, formerOf(row)]))
  return relinked.map(one => {
    const { made } = one
    const { tokenId } = one.token
    const former = current.get(tokenId)
    const fresh = isWanted(one, former) ? freshOf(one, counts.get(tokenId) ?? 0, job, deps) : undefined
    return { tokenId, former, fresh, made }
  })
}

/** The provisionings for which the provider must be called after the commit. */
export function provisionsOf({ former, fresh }: Replacement): string[] {
  return [...(former?.isLive ? [former.provisionId] : []), ...(fresh ? [fresh.provisionId] : [])]
}

export function formerOf(row: StoredScheme): FormerScheme {
  return { provisionId: row.provisionId, isLive: isLive(row), isInUse: isInUse(row) }
}

function isInUse(row: StoredScheme): boolean {
  if (!isLive(row)) return false
  return row.state === 'ACTIVE' || (row.state === 'PENDING' && (row.background || row.asked !== null))
}

/** Whether the new card gets a scheme token that the job hasn't had made. */
function isWanted({ scope, action, made }: Relinked, former: FormerScheme | undefined): boolean {
  if (made !== undefined || action === 'DELETE' || !isSupported(scope)) return false
  return action === 'ACTIVATE' || former?.isInUse === true
}

/** The new card's provisioning; undefined if it can't have one. `count`: how many provisionings the token has had. */
function freshOf({ token }: Relinked, count: number, job: JobIds, deps: ReplacementDeps): NewScheme | undefined {
  const card = storedCard(token, deps.ring)
  const network = deps.providers?.schemes.network(token.brand ?? '')
  if (!card || !network) return undefined
  const id = provisionId(job.receiptId, token.tokenId, count)
  return pendingRow(token, card, { ...job, provisionId: id, provider: network.name, background: true }, deps)
}
