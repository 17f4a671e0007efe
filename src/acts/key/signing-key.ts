// How the installation's signing key is replaced: a key is announced, and begins to sign later. Other files make and open the
// keys.
import * as audits from '../../store/access/audits.ts'
import * as signingKeyReaders from '../../store/access/signing-key-readers.ts'
import * as signingKeys from '../../store/access/signing-keys.ts'
import type { Db, Store } from '../../store/pool.ts'
import type { KeyRing } from '../../vault/key-ring.ts'
import { type ActResult, type By, perform } from '../act.ts'
import { grantSigningKey } from '../grants.ts'

export interface AnnouncedKey extends signingKeys.NewSigningKey {
  statement: string
  /** When it begins to sign, ms since the epoch. */
  activeAt: number
}

/** The statement of a key travels with results until the key has signed for so long. */
export const STATEMENT_MS = 90 * 86_400_000
/** The most statements that travel: every result carries them all. */
export const STATEMENTS_MAX = 8

/** Announces a key. `announced`: another key is announced already; `many`: too many statements travel with results. */
export function announceKey(
  { store, ring }: { store: Store; ring: Pick<KeyRing, 'grantMac' | 'grantMacBy'> },
  key: AnnouncedKey,
  by: By,
): Promise<ActResult<AnnouncedKey, 'announced' | 'many'>> {
  return perform(store, { action: 'signing-key.announce', subject: key.kid }, by, async db => {
    const { statements } = await signingKeys.findState(db, STATEMENT_MS)
    if (statements.length >= STATEMENTS_MAX) return { refused: 'many' }
    if (!(await signingKeys.announce(db, key))) return { refused: 'announced' }
    await grantSigningKey(db, ring, key)
    return { done: key, detail: { from: new Date(key.activeAt).toISOString() } }
  })
}

/** Lets the announced key sign from now on. `begun`: it signs already, or isn't known. */
export function beginKey(
  store: Store,
  kid: string,
  by: By,
): Promise<ActResult<{ retired: string | undefined }, 'begun'>> {
  return perform(store, { action: 'signing-key.begin', subject: kid }, by, async db => {
    if (!(await signingKeys.lockAnnounced(db, { kid, isDue: false }))) return { refused: 'begun' }
    const retired = await turn(db, kid)
    return { done: { retired }, detail: { retired, now: true } }
  })
}

/**
 * Takes an announcement back: deletes both halves of the key, so that no result carries its statement any more. `begun`: the
 * key signs already, or isn't known.
 */
export function cancelKey(store: Store, kid: string, by: By): Promise<ActResult<{ kid: string }, 'begun'>> {
  return perform(store, { action: 'signing-key.cancel', subject: kid }, by, async db => {
    if (!(await signingKeys.lockAnnounced(db, { kid, isDue: false }))) return { refused: 'begun' }
    await signingKeyReaders.forget(db, kid)
    await signingKeys.cancelAnnounced(db, kid)
    return { done: { kid }, detail: {} }
  })
}

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

async function turn(db: Db, kid: string): Promise<string | undefined> {
  const retired = await signingKeys.retireActive(db)
  await signingKeys.activate(db, kid)
  return retired
}
