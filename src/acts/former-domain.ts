// Forgets the passkeys of the console's former domain, where they can be used no more: a passkey is bound to a domain for good.
// Whoever has no other passkey enrols anew, by an invite.
import * as credentials from '../store/person/credentials.ts'
import * as persons from '../store/person/persons.ts'
import type { Store } from '../store/pool.ts'
import type { KeyRing } from '../vault/ring/key-ring.ts'
import { type ActResult, type By, perform } from './act.ts'
import { isPasskeyLive, isPersonLive } from './person-grants.ts'

export const FORGET_DOMAIN = 'passkey.forget-domain'

export interface Forgotten {
  passkeys: number
  /** The live people who have no passkey now. */
  locked: persons.Person[]
}

/** `current`: the console has this domain now. `unknown`: no live passkey is bound to it. */
export type ForgetRefusal = 'current' | 'unknown'

/** `rpId`: the console's domain now. `former`: the one whose passkeys are revoked; those of any further domain stay. */
export function forgetDomain(
  { store, ring, rpId }: { store: Store; ring: Pick<KeyRing, 'grantMacBy'>; rpId: string },
  former: string,
  by: By,
): Promise<ActResult<Forgotten, ForgetRefusal>> {
  return perform(store, { action: FORGET_DOMAIN, subject: former }, by, async db => {
    if (former === rpId) return { refused: 'current' }
    const all = await persons.lockAll(db)
    const passkeys = await credentials.revokeAllFor(db, former)
    if (passkeys === 0) return { refused: 'unknown' }
    const held = (await credentials.list(db)).filter(passkey => isPasskeyLive(ring, passkey))
    const holders = new Set(held.filter(passkey => passkey.rpId === rpId).map(({ personId }) => personId))
    const locked = all.filter(one => isPersonLive(ring, one) && !one.isLocal && !holders.has(one.personId))
    return { done: { passkeys, locked }, detail: { passkeys, domain: rpId, locked: locked.length } }
  })
}
