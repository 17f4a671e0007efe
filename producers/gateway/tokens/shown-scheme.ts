// The scheme token of a token as it is shown over HTTP: whole for GET, where this process holds the key of its number,
// masked elsewhere.
import type { Scope } from '../../../src/store/access/scopes.ts'
import * as shownSchemes from '../../../src/store/provider/shown-schemes.ts'
import { isSupported, type ShownScheme } from '../../../src/token/scheme.ts'
import { openNetworkToken } from '../../../src/vault/network-token.ts'
import type { GatewayDeps } from '../deps.ts'

type SchemeDeps = Pick<GatewayDeps, 'store' | 'networkTokenKey'>

export async function shownScheme(
  tokenId: string,
  scope: Scope | undefined,
  { store, networkTokenKey }: SchemeDeps,
  { whole }: { whole: boolean },
): Promise<ShownScheme | undefined> {
  if (!scope || !isSupported(scope)) return undefined
  const row = (await shownSchemes.findByTokens(store, [tokenId])).get(tokenId)
  if (!row) return undefined
  const shown = { row, support: scope }
  if (!whole || row.lastFour === null || scope.requestor !== 'MERCHANT') return shown
  const sealed = await shownSchemes.findSealed(store, row.provisionId)
  // Sealed under a key that this process hasn't got: it stays masked.
  if (!sealed || sealed.version !== networkTokenKey.version) return shown
  return { ...shown, number: openNetworkToken(networkTokenKey.key, sealed.sealed, row.provisionId).reveal() }
}
