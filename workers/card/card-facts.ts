// Computes from a checked card what the rules need to know: keyed hashes, the brand, the BIN and its issuer data.
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
  /** The brand that the request names. */
  cardBrand?: string | undefined
  /** Also computes the analytics token. */
  withAnalytics: boolean
  /** The field that a refusal names. */
  field: string
  /**
   * The id of the range within which the card has one token; default: the scope. For a third party's token it is that
   * of the contract in the scope.
   */
  place?: string | undefined
}

/** The facts of one card in one scope. */
export function factsOf(
  card: CardInput,
  { scope, cardBrand, withAnalytics, field, place = scope.tokenScope }: FactsOptions,
  deps: Pick<Deps, 'ring' | 'directory' | 'settings'>,
): CardFacts | Refusal {
  const pan = card.pan.reveal()
  const detected = detectBrand(pan)
  const range = deps.directory.bins().find(pan)
  const known = knownBrand(detected, range)
  const brand = checkBrand(cardBrand, detected ?? range?.brand, deps.settings.localSchemes)
  if (isRefusal(brand)) return brand
  if (!isPossibleLength(pan, detected)) return refuse('pan_length', field)
  return {
    fingerprints: deps.ring.fingerprints(card.pan, place),
    bin: shownBin(pan, scope.binDigits),
    lastFour: pan.slice(-4),
    brand: (cardBrand === undefined ? known : brand) ?? null,
    binRange: range?.id ?? null,
    ...(withAnalytics ? { analyticsToken: deps.ring.analyticsToken(card.pan, scope.tokenScope) } : {}),
  }
}

/** The brand of a card for which the request names none. */
export function knownBrand(detected: string | undefined, range: { brand: string } | undefined): string | undefined {
  // The digits of a co-badged card show its international brand; only BIN data show that it is also CB.
  return range?.brand === 'CB' ? 'CB' : (detected ?? range?.brand)
}

/** The scope; a refusal if this client may not use it. */
export async function scopeFor(
  client: Client,
  tokenScope: string,
  directory: Directory,
  field: string,
): Promise<Scope | Refusal> {
  const scope = await directory.scope(tokenScope)
  return scope && client.entities.includes(scope.entityId) ? scope : refuse('scope_forbidden', field)
}
