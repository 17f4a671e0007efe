// `person.enrol`: makes a person of an invite, or gives one a new passkey in place of the former ones, and the account that
// the invite names. The key in the
// invite's link and the new passkey are the proof; each refusal of the key has the same word.
import { type Actor, performIn } from '../../src/acts/act.ts'
import { bindIdentity } from '../../src/acts/identities.ts'
import { grantPasskey, grantPerson, isInviteLive, isPersonLive } from '../../src/acts/person-grants.ts'
import { isRefusal, type Refusal, refuse } from '../../src/errors.ts'
import { canonical } from '../../src/job/envelope/digest.ts'
import { type Act, type Enrolment, isEnrolment } from '../../src/job/system/act.ts'
import * as credentials from '../../src/store/person/credentials.ts'
import * as identities from '../../src/store/person/identities.ts'
import type { Invite } from '../../src/store/person/invites.ts'
import * as invites from '../../src/store/person/invites.ts'
import * as persons from '../../src/store/person/persons.ts'
import { type Db, LostRace } from '../../src/store/pool.ts'
import { type NewPasskey, readAttestation } from '../../src/vault/passkey/attestation.ts'
import { challengeOf } from '../../src/vault/passkey/challenge.ts'
import { isSignedByInvite } from '../../src/vault/passkey/invite-key.ts'
import type { Work } from '../work.ts'
import { flawed, useNonce } from './prove.ts'
import type { ActDeps } from './trust.ts'

export async function enrol(
  db: Db,
  { request, receiptId }: Work<Act>,
  deps: ActDeps,
): Promise<{ auditId: number } | Refusal> {
  const { proof, person_id: personId } = request
  if (!isEnrolment(proof)) return refuse('passkey_missing', 'body.proof')
  await persons.holdOffLockAll(db)
  const invite = await openInvite(db, request, proof, deps)
  if (!invite) return refuse('invite_unknown', 'body.proof')
  const passkey = readPasskey(request, proof, deps)
  if (isRefusal(passkey)) return passkey
  const repeated = await useNonce(db, request, receiptId)
  if (repeated) return repeated
  if (await credentials.find(db, passkey.credentialId)) return refuse('passkey_exists', 'body.proof')
  const account = accountOf(invite)
  // Those of the person are revoked with the passkeys.
  const holder = account && (await identities.findLive(db, account))?.personId
  if (holder !== undefined && holder !== invite.personId) return refuse('identity_taken', 'body.subject')
  const person =
    invite.personId === null ? await addPerson(db, invite, personId, deps) : await renew(db, invite, personId, deps)
  if (isRefusal(person)) return person
  await addPasskey(db, passkey, personId, deps)
  if (account) await bindIdentity(db, deps.ring, { ...account, personId })
  await invites.use(db, invite.inviteId)
  const actor: Actor = {
    kind: 'person',
    id: personId,
    credential: passkey.credentialId,
    proof: canonical(request),
  }
  const { inviteId, invitedBy } = invite
  const { name, roles, entities } = person
  const detail = {
    invite_id: inviteId,
    name,
    // A person who was here before keeps the rights of now, whatever the invite says.
    ...(invite.personId === null && { roles, entities }),
    invited_by: invitedBy,
    ...(account && { issuer: account.issuer, sub: account.subject }),
  }
  const deed = { action: 'person.enrol', subject: personId }
  return performIn(db, deed, { actor, reason: undefined }, async () => ({ done: undefined, detail }))
}

async function openInvite(
  db: Db,
  request: Act,
  proof: Enrolment,
  { ring, clock, console }: ActDeps,
): Promise<Invite | undefined> {
  const invite = UUID.test(request.subject) ? await invites.lock(db, request.subject) : undefined
  if (!invite || !isInviteLive(ring, invite, clock())) return undefined
  const challenge = challengeOf(request, console.installationId)
  return isSignedByInvite(invite.publicKey, proof, challenge) ? invite : undefined
}

const UUID = /^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$/

function readPasskey(request: Act, proof: Enrolment, { console }: ActDeps): NewPasskey | Refusal {
  const passkey = readAttestation(proof, { ...console, challenge: challengeOf(request, console.installationId) })
  if (typeof passkey === 'string') return flawed(passkey)
  return passkey.credentialId === proof.credential_id ? passkey : flawed('form')
}

function accountOf({ issuer, subject }: Invite): identities.Account | undefined {
  return issuer === null || subject === null ? undefined : { issuer, subject }
}

type Enrolled = Pick<persons.Person, 'name' | 'roles' | 'entities'>

async function addPerson(
  db: Db,
  { name, roles, entities }: Invite,
  personId: string,
  { ring }: ActDeps,
): Promise<Enrolled | Refusal> {
  const person = { personId, name, roles, entities, isLocal: false }
  if (!(await persons.insert(db, person))) return refuse('person_exists', 'body.person_id')
  await grantPerson(db, ring, person)
  return person
}

/**
 * The invite names the person, so the console can give its passkey to nobody else. A passkey that is added at the same moment is
 * revoked with the others: the invite may be there because one of them was stolen. Whoever stole it could connect an account, so
 * all accounts are disconnected, too. The person keeps the roles and entities of now: those of the invite may have been changed since.
 */
async function renew(db: Db, invite: Invite, personId: string, { ring }: ActDeps): Promise<Enrolled | Refusal> {
  const person = personId === invite.personId ? await persons.lock(db, personId) : undefined
  if (!person || !isPersonLive(ring, person)) return refuse('person_unknown', 'body.person_id')
  await credentials.revokeAllOf(db, personId)
  await identities.revokeAllOf(db, personId)
  return person
}

async function addPasskey(db: Db, passkey: NewPasskey, personId: string, { ring, console }: ActDeps): Promise<void> {
  const row = { ...passkey, personId, rpId: console.rpId }
  // Nothing of this transaction stays then.
  if (!(await credentials.insert(db, row))) throw new LostRace('another person enrolled this passkey meanwhile')
  await grantPasskey(db, ring, row)
}
