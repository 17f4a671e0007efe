// Changes what a person may do and see, gives a person a new link, and ends an invite. src/acts/person.ts adds and revokes people.
import * as invites from '../store/person/invites.ts'
import type { Person } from '../store/person/persons.ts'
import * as persons from '../store/person/persons.ts'
import type { Db } from '../store/pool.ts'
import { type ActResult, type By, type Decided, perform } from './act.ts'
import {
  haveSameRights,
  type Invited,
  type InviteKey,
  isAdminOfAll,
  isLastAdmin,
  type MadeInvite,
  makeInvite,
  newSecret,
  type Site,
  type SiteRing,
} from './person.ts'
import { grantPerson, isPersonLive } from './person-grants.ts'

export const CHANGE = 'person.change'
export const LINK = 'person.link'
export const REVOKE_INVITE = 'invite.revoke'

export type NewRights = Pick<Person, 'personId' | 'roles' | 'entities'>

/** `reserved`: the local person. `not_ours`: tokenmill didn't write the person's row. */
export type KnownRefusal = 'revoked' | 'reserved' | 'not_ours'
export type ChangeRefusal = KnownRefusal | 'unchanged' | 'last_admin'
/** `own`: nobody lets himself in again. `key_used`: another invite has this key. */
export type LinkRefusal = KnownRefusal | 'own' | 'key_used'

export interface Changed {
  /** Open invites that the person had made and could make no more. */
  invites: number
}

/** Gives a person other roles and entities. They hold from the person's next request on. */
export function changePerson(site: Site, rights: NewRights, by: By): Promise<ActResult<Changed, ChangeRefusal>> {
  const deed = { action: CHANGE, subject: rights.personId }
  return perform(site.store, deed, by, db => decideChange(db, site, rights))
}

export async function decideChange(
  db: Db,
  site: SiteRing,
  { personId, roles, entities }: NewRights,
): Promise<Decided<Changed, ChangeRefusal>> {
  const all = await persons.lockAll(db)
  const known = find(site, all, personId)
  if ('refused' in known) return known
  const { person } = known
  if (haveSameRights(person, { roles, entities })) return { refused: 'unchanged' }
  const staysAdmin = isAdminOfAll({ roles, entities })
  if (!staysAdmin && (await isLastAdmin(db, site, personId, all))) return { refused: 'last_admin' }
  const { name, isLocal } = person
  const meant = { personId, name, roles, entities, isLocal }
  await persons.change(db, meant)
  await grantPerson(db, site.ring, meant)
  const withdrawn = staysAdmin ? 0 : await invites.withdrawBy(db, `person:${personId}`)
  const former = { roles: person.roles, entities: person.entities }
  return { done: { invites: withdrawn }, detail: { name, roles, entities, former, invites: withdrawn } }
}

/** Makes a new link for a person who is known here: the passkey that it ends in replaces the former ones. `now`: ms. */
export async function linkPerson(
  site: Site,
  personId: string,
  by: By,
  now: number,
): Promise<ActResult<Invited, LinkRefusal>> {
  const { secret, key } = newSecret()
  const ended = await perform(site.store, { action: LINK, subject: personId }, by, db =>
    decideLink(db, site, { personId, key }, by, now),
  )
  return 'refused' in ended ? ended : { done: { ...ended.done, secret } }
}

/** As `linkPerson`, with a key that the caller has. */
export async function decideLink(
  db: Db,
  site: SiteRing,
  { personId, key }: { personId: string; key: InviteKey },
  by: By,
  now: number,
): Promise<Decided<MadeInvite, LinkRefusal>> {
  if (by.actor.kind === 'person' && by.actor.id === personId) return { refused: 'own' }
  const all = await persons.lockAll(db)
  const known = find(site, all, personId)
  if ('refused' in known) return known
  const { name, roles, entities } = known.person
  const decided = await makeInvite(db, site, { person: { name, roles, entities }, personId, key, all }, by, now)
  return 'refused' in decided ? decided : { ...decided, detail: { ...decided.detail, name } }
}

/** `used`: it was used, revoked or replaced, or there is none. */
export type RevokeInviteRefusal = 'used'

/** Makes an invite useless. Also one that has expired, because clocks differ. */
export function revokeInvite(
  { store }: Pick<Site, 'store'>,
  inviteId: string,
  by: By,
): Promise<ActResult<{ name: string }, RevokeInviteRefusal>> {
  return perform(store, { action: REVOKE_INVITE, subject: inviteId }, by, db => decideRevokeInvite(db, inviteId))
}

export async function decideRevokeInvite(
  db: Db,
  inviteId: string,
): Promise<Decided<{ name: string }, RevokeInviteRefusal>> {
  await persons.holdOffLockAll(db)
  const invite = await invites.lock(db, inviteId)
  if (!invite || invite.usedAt !== null) return { refused: 'used' }
  await invites.use(db, inviteId)
  const { name, roles, entities, personId } = invite
  return { done: { name }, detail: { name, roles, entities, person_id: personId } }
}

function find(
  { ring }: Pick<SiteRing, 'ring'>,
  all: readonly Person[],
  personId: string,
): { person: Person } | { refused: KnownRefusal } {
  const person = all.find(known => known.personId === personId)
  if (!person || person.revokedAt !== null) return { refused: 'revoked' }
  if (person.isLocal) return { refused: 'reserved' }
  return isPersonLive(ring, person) ? { person } : { refused: 'not_ours' }
}
