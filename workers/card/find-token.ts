// Finds a token by the name that callers use, if this caller may see the token. The answer is the same for another
// entity's token, a deleted token and one that never existed.
import { type Refusal, refuse } from '../../src/errors.ts'
import type { Client } from '../../src/store/access/clients.ts'
import type { StoredToken } from '../../src/store/token/tokens.ts'
import * as tokens from '../../src/store/token/tokens.ts'
import { parseReuseToken } from '../../src/token/token.ts'
import type { Deps } from '../deps.ts'

export async function tokenFor(
  client: Client,
  id: string,
  deps: Pick<Deps, 'store' | 'lookUps' | 'directory' | 'networks'>,
  field: string,
): Promise<StoredToken | Refusal> {
  const find: FindByIds = async ids => (await Promise.all(ids.map(deps.lookUps.token))).filter(row => row !== undefined)
  const found = (await tokensFor(client, [id], deps, find)).get(id)
  return found ?? refuse('token_not_found', field)
}

type FindByIds = (tokenIds: readonly string[]) => Promise<StoredToken[]>

/** The live tokens among `ids` that this client may see, by the given id. */
export async function tokensFor(
  client: Client,
  ids: readonly string[],
  { store, directory, networks }: Pick<Deps, 'store' | 'directory' | 'networks'>,
  findByIds: FindByIds = wanted => tokens.findByIds(store, wanted),
): Promise<Map<string, StoredToken>> {
  const wanted = new Map<string, string>()
  const foreign = new Set<string>()
  for (const id of ids) {
    const uuid = parseReuseToken(id)
    if (uuid === undefined) foreign.add(id)
    else wanted.set(id, uuid)
  }
  const isVisible = async ({ status, tokenScope }: StoredToken) => {
    const scope = status === 'DELETED' ? undefined : await directory.scope(tokenScope)
    return scope !== undefined && client.entities.includes(scope.entityId)
  }
  const rows = new Map((await findByIds([...new Set(wanted.values())])).map(row => [row.tokenId, row]))
  const visible = new Map<string, StoredToken>()
  for (const [id, uuid] of wanted) {
    const row = rows.get(uuid)
    // A third party's token isn't found by its own id, only by the third party's value.
    if (row && row.thirdParty === null && (await isVisible(row))) visible.set(id, row)
  }
  const doubtful = new Set<string>()
  const named = foreign.size === 0 ? [] : await networks.thirdParties.findTokens(store, [...foreign])
  for (const row of named.length === 0 ? [] : await tokens.findByIds(store, named)) {
    const name = row.thirdParty?.token ?? ''
    if (!(await isVisible(row))) continue
    if (visible.has(name)) doubtful.add(name)
    visible.set(name, row)
  }
  // If tokens of two contracts of this client have the same value, it isn't certain which one is meant, so neither is
  // returned.
  for (const name of doubtful) visible.delete(name)
  return visible
}
