// Acts on people and invites: only on what is still as it was shown. People for some entities know of no people. Then they are the acts of the commands (src/acts/person.ts, person-rights.ts). All of them exclude each other, from before it is
// checked who acts: of two administrators who revoke each other, the second is nobody any more.
import { type By, type Decided, performIn } from '../../src/acts/act.ts'
import { decideInvite, decideRevoke, type SiteRing } from '../../src/acts/person.ts'
import { decideChange, decideLink, decideRevokeInvite } from '../../src/acts/person-rights.ts'
import { assert, type Reason, refuse } from '../../src/errors.ts'
import type { Act, ActName } from '../../src/job/system/act.ts'
import { has } from '../../src/job/system/act-row.ts'
import {
  ChangeParameters,
  InviteParameters,
  LinkParameters,
  PEOPLE_ACTS,
  type PeopleActName,
  seenOfInvite,
  seenOfPerson,
} from '../../src/job/system/people.ts'
import * as invites from '../../src/store/person/invites.ts'
import * as persons from '../../src/store/person/persons.ts'
import type { Db } from '../../src/store/pool.ts'
import type { DoAct } from './prove.ts'

const UUID = /^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$/

/**
 * The caller calls it before it locks anything else. The subject's row comes second: an act of that person that has begun holds
 * it and is done before.
 */
export async function lockPeople(db: Db, { act, subject }: Pick<Act, 'act' | 'subject'>): Promise<void> {
  await persons.lockAll(db)
  if (isOnPerson(act) && UUID.test(subject)) await persons.lock(db, subject)
}

const isOnPerson = (act: ActName) => act === 'person.change' || act === 'person.link' || act === 'person.revoke'

export const actOnPeople: DoAct = async (db, { request, by, deed, refused }, { ring, console, clock }) => {
  const { act, subject } = request
  assert(has(PEOPLE_ACTS, act), 'its row says that it is on people')
  if (PEOPLE_ACTS[act].isSeen) {
    const seen = UUID.test(subject) ? await seenNow(db, act, subject) : undefined
    if (seen === undefined) return refused(act === 'invite.revoke' ? 'invite_unknown' : 'person_unknown', 'subject')
    if (seen !== request.seen) return refused('changed_meanwhile', 'seen')
  }
  const site = { ring, rpId: console.rpId }
  const ended = await performIn(db, deed, by, () => DECIDE[act](db, site, { request, by, now: clock() }))
  return 'refused' in ended ? refuse(SAID[ended.refused], 'body.subject') : ended
}

/** The person or invite as it is now; undefined: there is none. */
async function seenNow(db: Db, act: PeopleActName, subject: string): Promise<string | undefined> {
  if (act === 'invite.revoke') {
    const invite = await invites.lock(db, subject)
    return invite && seenOfInvite(invite)
  }
  const person = await persons.find(db, subject)
  return person && seenOfPerson(person)
}

type Word = keyof typeof SAID
type Decide = (db: Db, site: SiteRing, asked: { request: Act; by: By; now: number }) => Promise<Decided<unknown, Word>>

const DECIDE: Record<PeopleActName, Decide> = {
  'person.invite': (db, site, { request, by, now }) => {
    const { roles, entities, account, ...key } = InviteParameters.parse(request.parameters)
    const person = { name: request.subject, roles, entities, account }
    return decideInvite(db, site, { person, key: keyOf(key), isNew: true }, by, now)
  },
  'person.change': (db, site, { request }) => {
    const { roles, entities } = ChangeParameters.parse(request.parameters)
    return decideChange(db, site, { personId: request.subject, roles, entities })
  },
  'person.link': (db, site, { request, by, now }) => {
    const key = keyOf(LinkParameters.parse(request.parameters))
    return decideLink(db, site, { personId: request.subject, key }, by, now)
  },
  // Nobody means the last administrator here: a command does.
  'person.revoke': async (db, site, { request }) => {
    const person = await persons.find(db, request.subject)
    if (person?.isLocal) return { refused: 'reserved' }
    return decideRevoke(db, site, { personId: request.subject, isLast: false })
  },
  'invite.revoke': (db, _site, { request }) => decideRevokeInvite(db, request.subject),
}

function keyOf({ lookup_hash: lookup, public_key: key }: { lookup_hash: string; public_key: string }) {
  return { lookupHash: Buffer.from(lookup, 'base64url'), publicKey: Buffer.from(key, 'base64url') }
}

/** The words of refusals. */
const SAID = {
  reserved: 'person_local',
  known: 'person_exists',
  other_rights: 'person_exists',
  not_ours: 'person_unknown',
  key_used: 'act_repeated',
  identity_taken: 'identity_taken',
  own: 'person_own',
  unchanged: 'act_state',
  last_admin: 'last_admin',
  revoked: 'act_state',
  used: 'act_state',
} as const satisfies Record<string, Reason>
