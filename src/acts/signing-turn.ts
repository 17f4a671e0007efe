// The turn of the installation's signing key: an announced key begins to sign, and the former one ends.
import * as audits from '../store/access/audits.ts'
import * as signingKeys from '../store/access/signing-keys.ts'
import type { Db, Store } from '../store/pool.ts'

/** The statement of a key travels with results until the key has signed for so long. */
export const STATEMENT_MS = 90 * 86_400_000

/**
 * Lets the announced key sign if its time has come. If several workers call it, one begins. Returns whether it was this
 * one.
 */
export function beginWhenDue(store: Store, kid: string): Promise<boolean> {
  return store.transaction(async db => {
    if (!(await signingKeys.lockAnnounced(db, { kid, isDue: true }))) return false
    const retired = await turn(db, kid)
    const begun = { actor: 'worker', action: 'signing-key.begin', subject: kid, detail: { retired } }
    await audits.insert(db, { ...begun, isAutomatic: true })
    return true
  })
}

/** Lets the announced key sign in place of the one that signs now; returns the `kid` of that one. */
export async function turn(db: Db, kid: string): Promise<string | undefined> {
  const retired = await signingKeys.retireActive(db)
  await signingKeys.activate(db, kid)
  return retired
}
