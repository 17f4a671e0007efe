// Connects a person with an account at an OpenID provider, and ends that. The account is named by issuer and subject, never by
// an e-mail. It signs in; it signs no act.
import { randomUUID } from 'node:crypto'
import type { Account } from '../store/person/identities.ts'
import * as identities from '../store/person/identities.ts'
import { type Db, LostRace } from '../store/pool.ts'
import type { KeyRing } from '../vault/ring/key-ring.ts'
import type { Decided } from './act.ts'
import { grantIdentity } from './person-grants.ts'

export const CONNECT = 'identity.connect'
export const DISCONNECT = 'identity.disconnect'

type Ring = Pick<KeyRing, 'grantMac' | 'grantMacBy'>

/** An account of a person. */
export interface OwnAccount extends Account {
  personId: string
}

/** `identity_taken`: the account is connected with somebody, maybe with this person. */
export type ConnectRefusal = 'identity_taken'
/** `identity_unknown`: the person has no such account. */
export type DisconnectRefusal = 'identity_unknown'

/** The caller holds the person's row, so that nobody revokes the person or all identities meanwhile. */
export async function connectIdentity(
  db: Db,
  ring: Ring,
  own: OwnAccount,
): Promise<Decided<{ identityId: string }, ConnectRefusal>> {
  if (await identities.findLive(db, own)) return { refused: 'identity_taken' }
  const { identityId } = await bindIdentity(db, ring, own)
  return { done: { identityId }, detail: detailOf(own) }
}

/** Writes the row with its code. Throws `LostRace` if another person got the account meanwhile. */
export async function bindIdentity(
  db: Db,
  ring: Ring,
  { personId, issuer, subject }: OwnAccount,
): Promise<{ identityId: string }> {
  const row = { identityId: randomUUID(), personId, issuer, subject }
  // Nothing of this transaction stays then.
  if (!(await identities.insert(db, row))) throw new LostRace('another person got this account meanwhile')
  await grantIdentity(db, ring, row)
  return row
}

/** Sessions that began with it are over at once. */
export async function disconnectIdentity(db: Db, own: OwnAccount): Promise<Decided<undefined, DisconnectRefusal>> {
  const found = await identities.lockLive(db, own)
  if (found?.personId !== own.personId) return { refused: 'identity_unknown' }
  await identities.revoke(db, found.identityId)
  return { done: undefined, detail: detailOf(own) }
}

/** `sub` is the name that OpenID Connect gives the subject; `subject` of the audit's row is the person. */
const detailOf = ({ issuer, subject }: Account) => ({ issuer, sub: subject })
