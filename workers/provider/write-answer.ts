// Writes a network's answer into the row it was asked about, and gives the lease back. Where the reference it named is
// another provisioning's, the network is asked once more.
import type { Db } from '../../src/store/pool.ts'
import type { StoredScheme, Told } from '../../src/store/provider/scheme-row.ts'
import * as schemeTokens from '../../src/store/provider/scheme-tokens.ts'
import * as storedSchemes from '../../src/store/provider/stored-schemes.ts'
import type { Deps } from '../deps.ts'

export interface SettledIntent {
  intentId: string
  state: 'INTENDED' | 'DONE' | 'REFUSED'
  refusal: string | null
}

/** How long after a mishap that nobody is to blame for. */
const MISHAP_MS = 1_000

/** The row as it is then; undefined: the lease was lost, and the answer with it. */
export async function settle(
  told: Told,
  lease: string,
  deps: Deps,
  { db = deps.store, intent }: { db?: Db; intent?: SettledIntent | undefined } = {},
): Promise<StoredScheme | undefined> {
  const now = deps.clock()
  const written = await schemeTokens.tell(db, told, lease, now, intent)
  if (written) return written
  const row = await storedSchemes.find(db, told.provisionId)
  if (row?.lease !== lease) return undefined
  // The token that it named is another one's: whoever looks at this next finds out which is ours.
  deps.log.warn({ provision: told.provisionId }, 'a network named a token that is another provisioning’s')
  await schemeTokens.tell(db, { ...row, dueAt: now + MISHAP_MS }, lease, now)
  return undefined
}
