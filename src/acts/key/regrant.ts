// Codes anew the rows that grant rights, after the key of their codes was replaced. There are few of them, so the command
// does it itself, in one transaction.
import type { Store } from '../../store/pool.ts'
import type { KeyRing } from '../../vault/ring/key-ring.ts'
import { type By, perform } from '../act.ts'
import { type ListGrants, type Regranted, regrantAll } from '../grants.ts'
import { RESEAL } from './reseal.ts'

/** Codes the rows. A further call codes rows that were written under the former version meanwhile. */
export async function regrant(
  store: Store,
  ring: Pick<KeyRing, 'grantMac' | 'grantMacBy'>,
  by: By,
  lists: readonly ListGrants[],
): Promise<Regranted> {
  const result = await perform<Regranted, never>(store, { action: RESEAL, subject: 'grant' }, by, async db => {
    const done = await regrantAll(db, ring, lists)
    return { done, detail: { rows: done.done, ungranted: done.ungranted.length } }
  })
  if ('done' in result) return result.done
  throw new Error('broken law: this act is never refused')
}
