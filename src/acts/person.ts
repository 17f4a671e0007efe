// Adds people and revokes them. An invite names a person before there is one; the person's passkey makes the row, which a worker
// writes (workers/act.ts). The last administrator who can act stays, unless the command says that it means the last one.
// person-rights.ts changes people, and makes new links for them. Each `decide…` is the act inside of a transaction: commands call it by
// `perform`, a worker in the transaction that checks who acts.
import { randomBytes, randomUUID } from 'node:crypto'
import * as audits from '../store/access/audits.ts'
import * as credentials from '../store/person/credentials.ts'
import type { Account } from '../store/person/identities.ts'
import * as identities from '../store/person/identities.ts'
import * as invites from '../store/person/invites.ts'
import type { Person, PersonRole } from '../store/person/persons.ts'
import * as persons from '../store/person/persons.ts'
import type { Db, Store } from '../store/pool.ts'
import { hashOfLookup, lookupOf, publicKeyOf } from '../vault/passkey/invite-key.ts'
import type { KeyRing } from '../vault/ring/key-ring.ts'
import { type ActResult, type By, type Decided, perform } from './act.ts'
import { grantInvite, grantPerson, isPasskeyLive, isPersonLive } from './person-grants.ts'

export const INVITE = 'person.invite'
export const REVOKE = 'person.revoke'

const HOUR_MS = 3_600_000
const INVITE_MS = 24 * HOUR_MS
/** As long as nobody can sign in, an invite is the only way in. */
const FIRST_INVITE_MS = HOUR_MS
const LOCAL = 'local'

interface Vault {
  store: Store
  ring: Pick<KeyRing, 'grantMac' | 'grantMacBy'>
}

/** `rpId`: the domain of the console, to which the passkeys of those who can act are bound. */
export interface Site extends Vault {
  rpId: string
}
export type SiteRing = Omit<Site, 'store'>

/** What the store keeps of an invite's secret. */
export interface InviteKey {
  lookupHash: Buffer
  publicKey: Buffer
}

export interface NewPerson {
  name: string
  roles: PersonRole[]
  /** Null: all. */
  entities: string[] | null
  /** The account at an OpenID provider that the person is connected with at the enrolment. */
  account?: Account | undefined
}

export interface MadeInvite {
  inviteId: string
  /** ms since the epoch. */
  expiresAt: number
  /** The person who gets a new passkey in place of the former ones; null: a new person. */
  personId: string | null
}

export interface Invited extends MadeInvite {
  /** 32 random bytes, base64url. They are in the link and nowhere else: the store keeps what can be derived from them. */
  secret: string
}

/**
 * `reserved`: the name of the local person. `known`: the person exists. `other_rights`: the person exists with other roles or
 * entities. `not_ours`: tokenmill didn't write the person's row. `key_used`: another invite has this key. `identity_taken`: the
 * account is another person's.
 */
export type InviteRefusal = 'reserved' | 'known' | 'other_rights' | 'not_ours' | 'key_used' | 'identity_taken'

/**
 * Invites a person: a new one, or, if there is a live one of this name, that one to a new passkey. Earlier invites of the
 * person end. `now`: ms since the epoch.
 */
export async function invitePerson(
  site: Site,
  person: NewPerson,
  by: By,
  now: number,
): Promise<ActResult<Invited, InviteRefusal>> {
  const { secret, key } = newSecret()
  const ended = await perform(site.store, { action: INVITE, subject: person.name }, by, db =>
    decideInvite(db, site, { person, key, isNew: false }, by, now),
  )
  return 'refused' in ended ? ended : { done: { ...ended.done, secret } }
}

/** A secret for an invite, and what the store keeps of it. */
export function newSecret(): { secret: string; key: InviteKey } {
  const secret = randomBytes(32).toString('base64url')
  return { secret, key: { lookupHash: hashOfLookup(lookupOf(secret)), publicKey: publicKeyOf(secret) } }
}

/** As `invitePerson`, with a key that the caller has. `isNew`: not if there is a live person of this name. */
export async function decideInvite(
  db: Db,
  { ring, rpId }: SiteRing,
  { person, key, isNew }: { person: NewPerson; key: InviteKey; isNew: boolean },
  by: By,
  now: number,
): Promise<Decided<MadeInvite, InviteRefusal>> {
  if (person.name === LOCAL) return { refused: 'reserved' }
  const all = await persons.lockAll(db)
  const known = all.find(({ name, revokedAt }) => name === person.name && revokedAt === null)
  if (known && isNew) return { refused: 'known' }
  if (known && !isPersonLive(ring, known)) return { refused: 'not_ours' }
  if (known && !haveSameRights(known, person)) return { refused: 'other_rights' }
  const holder = person.account && (await identities.findLive(db, person.account))?.personId
  if (holder !== undefined && holder !== known?.personId) return { refused: 'identity_taken' }
  return makeInvite(db, { ring, rpId }, { person, personId: known?.personId ?? null, key, all }, by, now)
}

/** Makes the invite in place of those that the person has. The caller has locked all people. */
export async function makeInvite(
  db: Db,
  { ring, rpId }: SiteRing,
  {
    person,
    personId,
    key,
    all,
  }: { person: NewPerson; personId: string | null; key: InviteKey; all: readonly Person[] },
  by: By,
  now: number,
): Promise<Decided<MadeInvite, 'key_used'>> {
  if (await invites.isKnown(db, key.lookupHash)) return { refused: 'key_used' }
  const isFirst = (await listAdmins(db, { ring, rpId }, all)).length === 0
  const { name, roles, entities, account } = person
  await invites.withdraw(db, { personId, name })
  const invite = {
    inviteId: randomUUID(),
    ...key,
    name,
    roles,
    entities,
    personId,
    issuer: account?.issuer ?? null,
    subject: account?.subject ?? null,
    invitedBy: actorOf(by),
    expiresAt: now + (isFirst ? FIRST_INVITE_MS : INVITE_MS),
  }
  await invites.insert(db, invite)
  await grantInvite(db, ring, invite)
  const { inviteId, expiresAt } = invite
  const identity = account && { issuer: account.issuer, sub: account.subject }
  const detail = { invite_id: inviteId, roles, entities, person_id: personId, ...identity }
  return { done: { inviteId, expiresAt, personId }, detail }
}

const actorOf = ({ actor }: By) => `${actor.kind}:${actor.id}`

export function haveSameRights(known: Person, { roles, entities }: Pick<NewPerson, 'roles' | 'entities'>): boolean {
  const text = (person: Pick<NewPerson, 'roles' | 'entities'>) =>
    JSON.stringify([person.roles.toSorted(), person.entities?.toSorted() ?? null])
  return text(known) === text({ roles, entities })
}

export type RevokeRefusal = 'revoked' | 'last_admin'

/** `invites`: open ones that the person had made. */
export interface Revoked {
  passkeys: number
  identities: number
  invites: number
}

type Leaving = Pick<Person, 'personId'> & { isLast: boolean }

/**
 * Revokes a person with all passkeys and identities, and the open invites for the person and by the person. `isLast`: also the last
 * administrator, for instance one whose passkey was stolen; without it a person whose revocation leaves no administrator who can
 * act is kept.
 */
export function revokePerson(site: Site, leaving: Leaving, by: By): Promise<ActResult<Revoked, RevokeRefusal>> {
  const deed = { action: REVOKE, subject: leaving.personId }
  return perform(site.store, deed, by, db => decideRevoke(db, site, leaving))
}

export async function decideRevoke(
  db: Db,
  site: SiteRing,
  { personId, isLast }: Leaving,
): Promise<Decided<Revoked, RevokeRefusal>> {
  const all = await persons.lockAll(db)
  const person = all.find(known => known.personId === personId)
  if (!person || person.revokedAt !== null) return { refused: 'revoked' }
  const isLastOne = await isLastAdmin(db, site, personId, all)
  if (isLastOne && !isLast) return { refused: 'last_admin' }
  await persons.revoke(db, personId)
  const passkeys = await credentials.revokeAllOf(db, personId)
  const accounts = await identities.revokeAllOf(db, personId)
  await invites.withdraw(db, { personId, name: person.name })
  const withdrawn = await invites.withdrawBy(db, `person:${personId}`)
  const ended = { passkeys, identities: accounts, invites: withdrawn }
  return { done: ended, detail: { name: person.name, ...ended, last_admin: isLastOne } }
}

/** Whether nobody could act here as an administrator without this person, who can. The caller has locked all people. */
export async function isLastAdmin(
  db: Db,
  { ring, rpId }: SiteRing,
  personId: string,
  all: readonly Person[],
): Promise<boolean> {
  // A passkey of any domain, so that a command whose settings name another domain revokes nobody unasked.
  const isAdmin = (await listAdmins(db, { ring }, all)).includes(personId)
  const others = (await listAdmins(db, { ring, rpId }, all)).filter(id => id !== personId)
  return isAdmin && others.length === 0
}

/** Whether the person may do what only administrators of everything may. */
export function isAdminOfAll({ roles, entities }: Pick<Person, 'roles' | 'entities'>): boolean {
  return roles.includes('ADMIN') && entities === null
}

/** The ids of live people for all entities with the role ADMIN and a live passkey, of this domain if one is given. */
async function listAdmins(
  db: Db,
  { ring, rpId }: Pick<Vault, 'ring'> & { rpId?: string },
  all: readonly Person[],
): Promise<string[]> {
  const passkeys = (await credentials.list(db)).filter(passkey => isPasskeyLive(ring, passkey))
  const holders = new Set(passkeys.filter(one => (rpId ?? one.rpId) === one.rpId).map(({ personId }) => personId))
  const admins = all.filter(person => isAdminOfAll(person) && isPersonLive(ring, person))
  return admins.map(({ personId }) => personId).filter(personId => holders.has(personId))
}

/**
 * The id of the person who acts without a passkey on the embedded engine, where whoever runs tokenmill owns everything. Makes
 * the person if there is none. Workers with a PostgreSQL of their own never believe it.
 */
export async function ensureLocalPerson({ store, ring }: Vault): Promise<string> {
  return store.transaction(async db => {
    const known = (await persons.lockAll(db)).find(person => person.isLocal && isPersonLive(ring, person))
    if (known) return known.personId
    const person = { personId: randomUUID(), name: LOCAL, entities: null, isLocal: true }
    const meant = { ...person, roles: ['VIEWER', 'OPERATOR', 'ADMIN'] as PersonRole[] }
    await persons.insert(db, meant)
    await grantPerson(db, ring, meant)
    await audits.insert(db, { actor: 'start', action: 'person.local', subject: person.personId, isAutomatic: true })
    return person.personId
  })
}
