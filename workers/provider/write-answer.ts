// Writes a provider's answer into the leased row and gives the lease back. If another row has the reference that the
// provider named, nothing is written and the row becomes due again.
import type { Db } from '../../src/store/pool.ts'
import type { LeasedUpdate, StoredScheme } from '../../src/store/provider/scheme-row.ts'
import * as schemeTokens from '../../src/store/provider/scheme-tokens.ts'
import * as storedSchemes from '../../src/store/provider/stored-schemes.ts'
import type { Deps } from '../deps.ts'

/** What the answer does to the intent behind the call. */
export interface AnsweredIntent {
  intentId: string
  state: 'INTENDED' | 'DONE' | 'REFUSED'
  refusal: string | null
}

/** After how long a row whose reference belongs to another row is due again. */
const DUPLICATE_MS = 1_000

/** Returns the row as written; undefined if the lease was lost, and the answer with it. */
export async function writeAnswer(
  update: LeasedUpdate,
  lease: string,
  deps: Deps,
  { db = deps.store, intent }: { db?: Db; intent?: AnsweredIntent | undefined } = {},
): Promise<StoredScheme | undefined> {
  const now = deps.clock()
  const written = await schemeTokens.writeLeased(db, update, lease, now, intent)
  if (written) return written
  const row = await storedSchemes.find(db, update.provisionId)
  if (row?.lease !== lease) return undefined
  // When the row is due again, it is found out which token is its own.
  deps.log.warn({ provision: update.provisionId }, 'a network named a token that is another provisioning’s')
  await schemeTokens.writeLeased(db, { ...row, dueAt: now + DUPLICATE_MS }, lease, now)
  return undefined
}
