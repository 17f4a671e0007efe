// A token by the name that callers use, if the caller may see it. Four cases have the same answer, none: a missing
// token, a deleted one, one of another entity, and a third party's value that two visible tokens have.

import type { Scope } from '../../src/store/access/scopes.ts'
import * as shownTokens from '../../src/store/token/token-views.ts'
import { parseReuseToken, type TokenRow } from '../../src/token/token.ts'
import type { Caller } from './app.ts'
import type { GatewayDeps } from './deps.ts'

export async function findVisible(
  id: string,
  { client }: Caller,
  { store, directory, schemeTokens }: Pick<GatewayDeps, 'store' | 'directory' | 'schemeTokens'>,
): Promise<{ row: TokenRow; scope: Scope } | undefined> {
  const uuid = parseReuseToken(id)
  const ids = uuid === undefined ? await schemeTokens.findThirdPartyTokens(id) : [uuid]
  const rows = await shownTokens.findByIds(store, ids)
  const seen: { row: TokenRow; scope: Scope }[] = []
  for (const row of rows) {
    // A third party's token is found only by the third party's value, the vault's own token only by its UUID.
    const isNamed = uuid === undefined ? row.thirdParty?.token === id : row.thirdParty === null
    if (row.status === 'DELETED' || !isNamed) continue
    const scope = await directory.scope(row.tokenScope)
    if (scope && client.entities.includes(scope.entityId)) seen.push({ row, scope })
  }
  const [found, another] = seen
  return another ? undefined : found
}
