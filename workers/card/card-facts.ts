// From a checked card to what the rules need to know of it: keyed hashes, the brand, the BIN and what its range says.
// Only this file and the seal see the PAN.
import { isRefusal, type Refusal, refuse } from '../../src/errors.ts'
import type { Client } from '../../src/store/access/clients.ts'
import type { Scope } from '../../src/store/access/scopes.ts'
import { checkBrand, detectBrand, isPossibleLength, shownBin } from '../../src/token/brand.ts'
import type { CardInput } from '../../src/token/card.ts'
import type { CardFacts } from '../../src/token/decide.ts'
import type { Deps } from '../deps.ts'
import type { Directory } from '../directory.ts'

interface FactsOptions {
  scope: Scope
  /** As the request names it. */
  cardBrand?: string | undefined
  /** Makes the analytics token as well. */
  withAnalytics: boolean
  /** The field that a refusal names. */
  field: string
  /** The range within which the card has one token: the scope, unless it is a contract in the scope. */
  place?: string | undefined
}

/** Facts of one card in one scope. */
export function factsOf(
  card: CardInput,
  { scope, cardBrand, withAnalytics, field, place = scope.tokenScope }: FactsOptions,
  deps: Pick<Deps, 'ring' | 'directory' | 'settings'>,
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
