// A token by the name a caller uses, if the caller may see it. Another entity's token, a deleted one and one that
// never was are the same answer.
import { type Refusal, refuse } from '../../src/errors.ts'
import type { Client } from '../../src/store/access/clients.ts'
import type { StoredToken } from '../../src/store/token/tokens.ts'
import * as tokens from '../../src/store/token/tokens.ts'
import { parseReuseToken } from '../../src/token/token.ts'
import type { Deps } from '../deps.ts'

export async function tokenFor(
  client: Client,
  id: string,
  deps: Pick<Deps, 'store' | 'directory'>,
  field: string,
): Promise<StoredToken | Refusal> {
  const found = (await tokensFor(client, [id], deps)).get(id)
  return found ?? refuse('token_not_found', field)
}

/** The live tokens among `ids` that this client may see, by the id as given. */
export async function tokensFor(
  client: Client,
  ids: readonly string[],
  { store, directory }: Pick<Deps, 'store' | 'directory'>,
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
  const rows = new Map((await tokens.findByIds(store, [...new Set(wanted.values())])).map(row => [row.tokenId, row]))
  const visible = new Map<string, StoredToken>()
  for (const [id, uuid] of wanted) {
    const row = rows.get(uuid)
    // A third party's token has but the name that the third party gave it.
    if (row && row.thirdParty === null && (await isVisible(row))) visible.set(id, row)
  }
  const doubtful = new Set<string>()
  for (const row of await tokens.findByThirdParty(store, [...foreign])) {
    const name = row.thirdParty?.token ?? ''
    if (!(await isVisible(row))) continue
    if (visible.has(name)) doubtful.add(name)
    visible.set(name, row)
  }
  // Tokens of two of this client's contracts that are called the same: neither is meant for certain.
  for (const name of doubtful) visible.delete(name)
  return visible
}
