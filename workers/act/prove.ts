// Finds out whether the person whom an act names has signed it, now and for the first time. It reads the store's rows and this
// worker's own settings, and believes nothing that the console says.

import type { Actor, By, Deed } from '../../src/acts/act.ts'
import { isPasskeyLive, isPersonLive } from '../../src/acts/person-grants.ts'
import { type Reason, type Refusal, refuse } from '../../src/errors.ts'
import { canonical } from '../../src/job/envelope/digest.ts'
import { ACT_LASTS_S_MAX, type Act, type Assertion, isAssertion } from '../../src/job/system/act.ts'
import * as actNonces from '../../src/store/person/act-nonces.ts'
import * as credentials from '../../src/store/person/credentials.ts'
import type { Person } from '../../src/store/person/persons.ts'
import * as persons from '../../src/store/person/persons.ts'
import type { Db } from '../../src/store/pool.ts'
import { verifyAssertion } from '../../src/vault/passkey/assertion.ts'
import { challengeOf } from '../../src/vault/passkey/challenge.ts'
import type { PasskeyFlaw } from '../../src/vault/passkey/client-data.ts'
import type { Work } from '../work.ts'
import type { ActDeps } from './trust.ts'

export interface Proved {
  person: Person
  actor: Actor
}

/** An act of a person who has proved it, and whom its row permits it. */
export interface Doing extends Proved {
  request: Act
  by: By
  deed: Deed
  /** Records the refusal. `field`: of the request. */
  refused(word: Reason, field: string, entityId?: string | null): Promise<Refusal>
}

/** Returns the id of the audit row. */
export type DoAct = (db: Db, doing: Doing, deps: ActDeps) => Promise<{ auditId: number } | Refusal>

const proofField = 'body.proof'

export function timely({ expires_at: expiresAt }: Act, { clock }: Pick<ActDeps, 'clock'>): Refusal | undefined {
  const now = clock() / 1000
  const isTimely = now < expiresAt && expiresAt <= now + ACT_LASTS_S_MAX
  return isTimely ? undefined : refuse('act_expired', 'body.expires_at')
}

/** The person, if the proof is right. Then the passkey and the nonce are used, whatever becomes of the act. */
export async function prove(db: Db, work: Work<Act>, deps: ActDeps): Promise<Proved | Refusal> {
  const { request, receiptId } = work
  const person = await livePerson(db, request, deps)
  if ('refused' in person) return person
  const actor = await actorOf(db, person, request, deps)
  if ('refused' in actor) return actor
  return (await useNonce(db, request, receiptId)) ?? { person, actor }
}

/** The person whom the act names, if tokenmill made that person and nobody revoked it. Says nothing about who asks. */
export async function livePerson(
  db: Db,
  { person_id: personId }: Pick<Act, 'person_id'>,
  { ring, onUngranted }: Pick<ActDeps, 'ring' | 'onUngranted'>,
): Promise<Person | Refusal> {
  const person = await persons.hold(db, personId)
  if (!person || person.revokedAt !== null) return refuse('person_unknown', 'body.person_id')
  if (isPersonLive(ring, person)) return person
  onUngranted('person', person.personId)
  return refuse('person_unknown', 'body.person_id')
}

async function actorOf(db: Db, person: Person, request: Act, deps: ActDeps): Promise<Actor | Refusal> {
  const { proof } = request
  const { personId: id } = person
  // How this process opened its store says whether that is so. Nothing in the job can.
  if (proof === null && deps.console.isEmbedded && person.isLocal) return { kind: 'person', id, unproved: true }
  if (!isAssertion(proof)) return refuse('passkey_missing', proofField)
  const flaw = await usePasskey(db, { personId: id, proof, request }, deps)
  return flaw ?? { kind: 'person', id, credential: proof.credential_id, proof: canonical(request) }
}

async function usePasskey(
  db: Db,
  { personId, proof, request }: { personId: string; proof: Assertion; request: Act },
  { ring, console, onUngranted }: ActDeps,
): Promise<Refusal | undefined> {
  const passkey = await credentials.lock(db, proof.credential_id)
  if (passkey?.personId !== personId || passkey.revokedAt !== null) return refuse('passkey_unknown', proofField)
  if (!isPasskeyLive(ring, passkey)) {
    onUngranted('passkey', passkey.credentialId)
    return refuse('passkey_unknown', proofField)
  }
  if (passkey.rpId !== console.rpId) return refuse('passkey_rp_id', proofField)
  const challenge = challengeOf(request, console.installationId)
  const verified = verifyAssertion(proof, { ...passkey, ...console, challenge })
  if (typeof verified === 'string') return flawed(verified)
  await credentials.use(db, passkey.credentialId, verified.signCount)
  return undefined
}

export function flawed(flaw: PasskeyFlaw): Refusal {
  return refuse(`passkey_${flaw}`, proofField)
}

/** A refusal if the nonce was used before; else it is used now. */
export async function useNonce(db: Db, { nonce }: Act, receiptId: string): Promise<Refusal | undefined> {
  const isNew = await actNonces.use(db, { nonce, receiptId })
  return isNew ? undefined : refuse('act_repeated', 'body.nonce')
}
