// Reads the scheme token that a token's record shows.
import type { Scope } from '../../src/store/access/scopes.ts'
import { isSupported, type ShownScheme } from '../../src/token/scheme.ts'
import type { Deps } from '../deps.ts'

/** Undefined if the token has none. If the scope doesn't support scheme tokens, the store isn't read. */
export async function shownScheme(
  tokenId: string,
  scope: Scope | undefined,
  { lookUps }: Pick<Deps, 'lookUps'>,
): Promise<ShownScheme | undefined> {
  if (!scope || !isSupported(scope)) return undefined
  const row = await lookUps.shownScheme(tokenId)
  return row && { row, support: scope }
}
