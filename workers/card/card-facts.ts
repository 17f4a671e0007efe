// From a checked card to what the rules need to know of it: keyed hashes, the brand, the BIN and what its range says.
// The PAN goes no further than this file and the seal.
import { isRefusal, type Refusal, refuse } from '../../src/errors.ts'
import type { Client } from '../../src/store/access/clients.ts'
import type { Scope } from '../../src/store/access/scopes.ts'
import { checkBrand, detectBrand, isPossibleLength, shownBin } from '../../src/token/brand.ts'
import type { CardInput } from '../../src/token/card.ts'
import type { CardFacts } from '../../src/token/decide.ts'
import type { Deps } from '../deps.ts'
import type { Directory } from '../directory.ts'

/**
 * Facts of one card in one scope. `withAnalytics`: also the token that can't be reversed. `place`: where the card has but
 * one token, the scope unless a contract in it.
 */
export function factsOf(
  card: CardInput,
  scope: Scope,
  cardBrand: string | undefined,
  withAnalytics: boolean,
  deps: Pick<Deps, 'ring' | 'directory' | 'settings'>,
  field: string,
  place = scope.tokenScope,
): CardFacts | Refusal {
  const pan = card.pan.reveal()
  const detected = detectBrand(pan)
  const range = deps.directory.bins().find(pan)
  // A co-badged card shows its scheme's range; that it is also CB only BIN data tell.
  const known = range?.brand === 'CB' ? 'CB' : (detected ?? range?.brand)
  const brand = checkBrand(cardBrand, detected ?? range?.brand, deps.settings.localSchemes)
  if (isRefusal(brand)) return brand
  if (!isPossibleLength(pan, detected)) return refuse('pan_length', field)
  return {
    fingerprint: deps.ring.fingerprint(card.pan, place),
    bin: shownBin(pan, scope.binDigits),
    lastFour: pan.slice(-4),
    brand: (cardBrand === undefined ? known : brand) ?? null,
    binRange: range?.id ?? null,
    ...(withAnalytics ? { analyticsToken: deps.ring.analyticsToken(card.pan, scope.tokenScope) } : {}),
  }
}

/** The scope, if this client may use it. */
export async function scopeFor(
  client: Client,
  tokenScope: string,
  directory: Directory,
  field: string,
): Promise<Scope | Refusal> {
  const scope = await directory.scope(tokenScope)
  return scope && client.entities.includes(scope.entityId) ? scope : refuse('scope_forbidden', field)
}
