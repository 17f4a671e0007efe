// How the installation's signing key is replaced: a key is announced, and begins to sign later (../signing-turn.ts). Other files
// make and open the keys.
import * as signingKeyReaders from '../../store/access/signing-key-readers.ts'
import * as signingKeys from '../../store/access/signing-keys.ts'
import type { Store } from '../../store/pool.ts'
import type { KeyRing } from '../../vault/ring/key-ring.ts'
import { type ActResult, type By, perform } from '../act.ts'
import { grantSigningKey } from '../grants.ts'
import { STATEMENT_MS, turn } from '../signing-turn.ts'

export interface AnnouncedKey extends signingKeys.NewSigningKey {
  statement: string
  /** When it begins to sign, ms since the epoch. */
  activeAt: number
}

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
