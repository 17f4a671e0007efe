// Adds people and revokes them. An invite names a person before there is one; the person's passkey makes the row, which a worker
// writes (workers/act.ts). The last administrator who can act stays, unless the command says that it means the last one.
import { randomBytes, randomUUID } from 'node:crypto'
import * as audits from '../store/access/audits.ts'
import * as credentials from '../store/person/credentials.ts'
import type { Account } from '../store/person/identities.ts'
import * as identities from '../store/person/identities.ts'
import * as invites from '../store/person/invites.ts'
import type { Person, PersonRole } from '../store/person/persons.ts'
import * as persons from '../store/person/persons.ts'
import type { Db, Store } from '../store/pool.ts'
import type { KeyRing } from '../vault/key-ring.ts'
import { hashOfLookup, lookupOf, publicKeyOf } from '../vault/passkey/invite-key.ts'
import { type ActResult, type By, perform } from './act.ts'
import { grantInvite, grantPerson, isPasskeyLive, isPersonLive } from './grants.ts'

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
interface Site extends Vault {
  rpId: string
}

export interface NewPerson {
  name: string
  roles: PersonRole[]
  /** Null: all. */
  entities: string[] | null
  /** The account at an OpenID provider that the person is connected with at the enrolment. */
  account?: Account | undefined
}

export interface Invited {
  inviteId: string
  /** 32 random bytes, base64url. They are in the link and nowhere else: the store keeps what can be derived from them. */
  secret: string
  /** ms since the epoch. */
  expiresAt: number
  /** The person who gets a new passkey in place of the former ones; null: a new person. */
  personId: string | null
}

/**
 * `reserved`: the name of the local person. `other_rights`: the person exists with other roles or entities. `not_ours`:
 * tokenmill didn't write the person's row. `identity_taken`: the account is another person's.
 */
export type InviteRefusal = 'reserved' | 'other_rights' | 'not_ours' | 'identity_taken'

/**
 * Invites a person: a new one, or, if there is a live one of this name, that one to a new passkey. Earlier invites of the
 * person end. `now`: ms since the epoch.
 */
export function invitePerson(
  { store, ring, rpId }: Site,
  person: NewPerson,
  by: By,
  now: number,
): Promise<ActResult<Invited, InviteRefusal>> {
  return perform(store, { action: INVITE, subject: person.name }, by, async db => {
    if (person.name === LOCAL) return { refused: 'reserved' }
    const all = await persons.lockAll(db)
    const known = all.find(({ name, revokedAt }) => name === person.name && revokedAt === null)
    if (known && !isPersonLive(ring, known)) return { refused: 'not_ours' }
    if (known && !haveSameRights(known, person)) return { refused: 'other_rights' }
    const { name, roles, entities, account } = person
    const holder = account && (await identities.findLive(db, account))?.personId
    if (holder !== undefined && holder !== known?.personId) return { refused: 'identity_taken' }
    const isFirst = (await listAdmins(db, { ring, rpId }, all)).length === 0
    const personId = known?.personId ?? null
    await invites.withdraw(db, { personId, name: person.name })
    const secret = randomBytes(32).toString('base64url')
    const invite = {
      ...{ inviteId: randomUUID(), lookupHash: hashOfLookup(lookupOf(secret)), publicKey: publicKeyOf(secret) },
      ...{ name, roles, entities, personId, issuer: account?.issuer ?? null, subject: account?.subject ?? null },
      ...{ invitedBy: `${by.actor.kind}:${by.actor.id}`, expiresAt: now + (isFirst ? FIRST_INVITE_MS : INVITE_MS) },
    }
    await invites.insert(db, invite)
    await grantInvite(db, ring, invite)
    const { inviteId, expiresAt } = invite
    const identity = account && { issuer: account.issuer, sub: account.subject }
    const detail = { invite_id: inviteId, roles, entities, person_id: personId, ...identity }
    return { done: { inviteId, secret, expiresAt, personId }, detail }
  })
}

function haveSameRights(known: Person, { roles, entities }: NewPerson): boolean {
  const text = (person: Pick<NewPerson, 'roles' | 'entities'>) =>
    JSON.stringify([person.roles.toSorted(), person.entities?.toSorted() ?? null])
  return text(known) === text({ roles, entities })
}

export type RevokeRefusal = 'revoked' | 'last_admin'

/**
 * Revokes a person with all passkeys, identities and open invites. `isLast`: also the last administrator, for instance one whose passkey
 * was stolen; without it a person whose revocation leaves no administrator who can act is kept.
 */
export function revokePerson(
  { store, ring, rpId }: Site,
  { personId, isLast }: Pick<Person, 'personId'> & { isLast: boolean },
  by: By,
): Promise<ActResult<{ passkeys: number; identities: number }, RevokeRefusal>> {
  return perform(store, { action: REVOKE, subject: personId }, by, async db => {
    const all = await persons.lockAll(db)
    const person = all.find(known => known.personId === personId)
    if (!person || person.revokedAt !== null) return { refused: 'revoked' }
    // A passkey of any domain, so that a command whose settings name another domain revokes nobody unasked.
    const isAdmin = (await listAdmins(db, { ring }, all)).includes(personId)
    const others = (await listAdmins(db, { ring, rpId }, all)).filter(id => id !== personId)
    const isLastAdmin = isAdmin && others.length === 0
    if (isLastAdmin && !isLast) return { refused: 'last_admin' }
    await persons.revoke(db, personId)
    const passkeys = await credentials.revokeAllOf(db, personId)
    const accounts = await identities.revokeAllOf(db, personId)
    await invites.withdraw(db, { personId, name: person.name })
    const ended = { passkeys, identities: accounts }
    return { done: ended, detail: { name: person.name, ...ended, last_admin: isLastAdmin } }
  })
}

/** The ids of live people for all entities with the role ADMIN and a live passkey, of this domain if one is given. */
async function listAdmins(
  db: Db,
  { ring, rpId }: Pick<Vault, 'ring'> & { rpId?: string },
  all: readonly Person[],
): Promise<string[]> {
  const passkeys = (await credentials.list(db)).filter(passkey => isPasskeyLive(ring, passkey))
  const holders = new Set(passkeys.filter(one => (rpId ?? one.rpId) === one.rpId).map(({ personId }) => personId))
  const isAdmin = ({ roles, entities }: Person) => roles.includes('ADMIN') && entities === null
  const admins = all.filter(person => isAdmin(person) && isPersonLive(ring, person))
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
