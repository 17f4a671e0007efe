// Acts of a person on people and their invites, and what a page showed of one. Workers, commands and the console read the same rules
// here; src/acts/person.ts and person-rights.ts do the acts.
import { createHash } from 'node:crypto'
import { z } from 'zod'
import { holdsPossiblePan } from '../../token/possible-pan.ts'
import { isPrintable, uuid } from '../envelope/text.ts'
import { AccountParameters } from './account.ts'
import { type ActRow, noFacts, PERSON_ROLES } from './act-row.ts'

export const PERSON_NAME_MAX = 64
/** How many entities a person may be limited to. */
export const PERSON_ENTITIES_MAX = 500

/** Whether a person may have this name. */
export function isPersonName(name: string): boolean {
  const isLong = name.length > PERSON_NAME_MAX
  return name === name.trim() && name !== '' && !isLong && isPrintable(name) && !holdsPossiblePan(name)
}

const isUnique = (list: readonly string[]) => new Set(list).size === list.length

const roles = () => z.array(z.enum(PERSON_ROLES)).min(1).refine(isUnique)
/** Null: all. */
const entities = () => z.array(uuid()).min(1).max(PERSON_ENTITIES_MAX).refine(isUnique).nullable()
/** 32 bytes. */
const value = () => z.string().regex(/^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$/)

/**
 * What the store keeps of an invite's secret (src/vault/passkey/invite-key.ts). The browser of whoever invites makes the secret
 * and derives both.
 */
const Key = z.strictObject({ lookup_hash: value(), public_key: value() })
const Rights = z.strictObject({ roles: roles(), entities: entities() })

/** The account is connected at the enrolment. The audit keeps it, so a subject that could hold a card number is refused. */
const Account = AccountParameters.refine(({ subject }) => !holdsPossiblePan(subject))

/** The subject is the name. */
export const InviteParameters = z.strictObject({ ...Rights.shape, ...Key.shape, account: Account.exactOptional() })
/** The subject is the id of the person, as of `person.link` and `person.revoke`. */
export const ChangeParameters = Rights
export const LinkParameters = Key
const None = z.strictObject({})

const COMMON = { on: 'people', roles: ['ADMIN'], reach: 'all' } as const satisfies Partial<ActRow>
const rightsOf: ActRow['facts'] = ({ parameters }) => ({ roles: parameters['roles'], entities: parameters['entities'] })

export const PEOPLE_ACTS = {
  'person.invite': {
    ...COMMON,
    verb: 'Invite',
    noun: 'a person',
    isFinal: false,
    parameters: InviteParameters,
    // The person isn't there yet.
    isSeen: false,
    facts: rightsOf,
  },
  'person.change': {
    ...COMMON,
    verb: 'Change',
    noun: 'roles and entities',
    isFinal: false,
    parameters: ChangeParameters,
    isSeen: true,
    facts: rightsOf,
  },
  'person.link': {
    ...COMMON,
    verb: 'Make',
    noun: 'a new link',
    isFinal: false,
    parameters: LinkParameters,
    isSeen: true,
    facts: noFacts,
  },
  'person.revoke': {
    ...COMMON,
    verb: 'Revoke',
    noun: 'a person',
    isFinal: true,
    parameters: None,
    isSeen: true,
    facts: noFacts,
  },
  'invite.revoke': {
    ...COMMON,
    verb: 'Revoke',
    noun: 'an invite',
    isFinal: true,
    parameters: None,
    isSeen: true,
    facts: noFacts,
  },
} as const satisfies Record<string, ActRow>
export type PeopleActName = keyof typeof PEOPLE_ACTS

export interface ShownPerson {
  personId: string
  name: string
  roles: readonly string[]
  entities: readonly string[] | null
  /** ms since the epoch. */
  revokedAt: number | null
}

/**
 * What somebody saw of a person: SHA-256, base64url. Passkeys and sessions don't belong to it: whoever stole a passkey could
 * else keep the person from being revoked by adding another one.
 */
export function seenOfPerson({ personId, name, roles, entities, revokedAt }: ShownPerson): string {
  return digestOf(['person', personId, name, roles, entities, revokedAt])
}

export interface ShownInvite {
  inviteId: string
  name: string
  roles: readonly string[]
  entities: readonly string[] | null
  personId: string | null
  invitedBy: string
  /** ms since the epoch. */
  expiresAt: number
  usedAt: number | null
}

/** What somebody saw of an invite: SHA-256, base64url. */
export function seenOfInvite(invite: ShownInvite): string {
  const { inviteId, name, roles, entities, personId, invitedBy, expiresAt, usedAt } = invite
  return digestOf(['invite', inviteId, name, roles, entities, personId, invitedBy, expiresAt, usedAt])
}

function digestOf(shown: readonly unknown[]): string {
  return createHash('sha256').update(JSON.stringify(shown)).digest('base64url')
}
