// The codes of the rows by which people have rights: persons, their passkeys, their accounts at OpenID providers, and
// invites.
import * as credentials from '../store/person/credentials.ts'
import * as identities from '../store/person/identities.ts'
import * as invites from '../store/person/invites.ts'
import * as persons from '../store/person/persons.ts'
import type { Db } from '../store/pool.ts'
import {
  type IdentityRow,
  type InviteRow,
  identityText,
  inviteText,
  isGranted,
  type PasskeyRow,
  type PersonRow,
  passkeyText,
  personText,
} from '../vault/ring/grants.ts'
import { type Grant, macOf } from './grant-rows.ts'
import { type GrantRing, type ListGrants, sealAsMeant } from './grants.ts'

export async function grantPerson(db: Db, ring: GrantRing, meant: PersonRow): Promise<void> {
  const person = await persons.find(db, meant.personId)
  await sealAsMeant(db, ring, person && ofPerson(person), personText(meant))
}

export async function grantPasskey(db: Db, ring: GrantRing, meant: PasskeyRow): Promise<void> {
  const passkey = await credentials.find(db, meant.credentialId)
  await sealAsMeant(db, ring, passkey && ofPasskey(passkey), passkeyText(meant))
}

export async function grantIdentity(db: Db, ring: GrantRing, meant: IdentityRow): Promise<void> {
  const identity = await identities.find(db, meant.identityId)
  await sealAsMeant(db, ring, identity && ofIdentity(identity), identityText(meant))
}

export async function grantInvite(db: Db, ring: GrantRing, meant: InviteRow): Promise<void> {
  const invite = await invites.find(db, meant.inviteId)
  await sealAsMeant(db, ring, invite && ofInvite(invite), inviteText(meant))
}

/** Whether tokenmill wrote the person, who isn't revoked. */
export function isPersonLive(ring: Pick<GrantRing, 'grantMacBy'>, person: persons.Person): boolean {
  return person.revokedAt === null && isGranted(ring, personText(person), person)
}

/** Whether tokenmill wrote the passkey, which isn't revoked. */
export function isPasskeyLive(ring: Pick<GrantRing, 'grantMacBy'>, passkey: credentials.Credential): boolean {
  return passkey.revokedAt === null && isGranted(ring, passkeyText(passkey), passkey)
}

/** Whether tokenmill wrote the identity, which isn't revoked. */
export function isIdentityLive(ring: Pick<GrantRing, 'grantMacBy'>, identity: identities.Identity): boolean {
  return identity.revokedAt === null && isGranted(ring, identityText(identity), identity)
}

/** Whether tokenmill wrote the invite, which wasn't used. `now`: ms since the epoch. */
export function isInviteLive(ring: Pick<GrantRing, 'grantMacBy'>, invite: invites.Invite, now: number): boolean {
  return invite.usedAt === null && now < invite.expiresAt && isGranted(ring, inviteText(invite), invite)
}

export const listPersonGrants: ListGrants = async db => [
  ...(await persons.list(db)).map(ofPerson),
  ...(await credentials.list(db)).map(ofPasskey),
  ...(await identities.list(db)).map(ofIdentity),
  ...(await invites.list(db)).map(ofInvite),
]

function ofPerson(person: persons.Person): Grant {
  const { personId, revokedAt } = person
  return {
    kind: 'person',
    id: personId,
    text: personText(person),
    isRevoked: revokedAt !== null,
    ...macOf(person),
    save: (db, ...code) => persons.setMac(db, personId, ...code),
  }
}

function ofPasskey(passkey: credentials.Credential): Grant {
  const { credentialId, revokedAt } = passkey
  return {
    kind: 'passkey',
    id: credentialId,
    text: passkeyText(passkey),
    isRevoked: revokedAt !== null,
    ...macOf(passkey),
    save: (db, ...code) => credentials.setMac(db, credentialId, ...code),
  }
}

function ofIdentity(identity: identities.Identity): Grant {
  const { identityId, revokedAt } = identity
  return {
    kind: 'identity',
    id: identityId,
    text: identityText(identity),
    isRevoked: revokedAt !== null,
    ...macOf(identity),
    save: (db, ...code) => identities.setMac(db, identityId, ...code),
  }
}

function ofInvite(invite: invites.Invite): Grant {
  const { inviteId, usedAt } = invite
  return {
    kind: 'invite',
    id: inviteId,
    text: inviteText(invite),
    isRevoked: usedAt !== null,
    ...macOf(invite),
    save: (db, ...code) => invites.setMac(db, inviteId, ...code),
  }
}
