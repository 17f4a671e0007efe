// Checks again what an audit row keeps as the proof of a person's act: what a passkey or the key in an invite signed, and whether
// the row says what that asks for. It takes public keys from the store, as src/audit/proof.ts does.
import { createHash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { type CheckPersonProof, type Proved, wrong } from '../audit/proof.ts'
import { canonical } from '../job/envelope/digest.ts'
import { readObject } from '../job/envelope/strict-json.ts'
import { Act, type Assertion, type Enrolment, isAssertion, isEnrolment, rowOf } from '../job/system/act.ts'
import { FailedParameters, failedSubject } from '../job/system/failed-act.ts'
import type { AuditRow } from '../store/access/audits.ts'
import * as audits from '../store/access/audits.ts'
import * as installation from '../store/installation.ts'
import * as credentials from '../store/person/credentials.ts'
import * as invites from '../store/person/invites.ts'
import type { Db } from '../store/pool.ts'
import { verifyAssertion } from '../vault/passkey/assertion.ts'
import { challengeOf } from '../vault/passkey/challenge.ts'
import { bytesOf } from '../vault/passkey/client-data.ts'
import { isSignedByInvite } from '../vault/passkey/invite-key.ts'

/** Checks what a person's passkey or invite signed, as `checkProof` asks for it. */
export const checkPersonProof: CheckPersonProof = async (db, row, proof) => {
  const { actor, action, detail } = row
  if (createHash('sha256').update(proof).digest('hex') !== detail['proof_sha256'])
    return wrong('its SHA-256 is not that of the row')
  const request = Act.safeParse(readObject(Buffer.from(proof))).data
  if (!request?.proof || canonical(request) !== proof) return wrong('it is not the signed request of an act')
  if (request.act !== action || `person:${request.person_id}` !== actor) return wrong('it is of another act or person')
  if (request.proof.credential_id !== detail['credential']) return wrong('it is of another passkey')
  const told = toldBy(row, request)
  if (typeof told !== 'string') return wrong(`it asks for something else: another ${told.differs}`)
  const signer = await signerOf(db, request, detail)
  if ('why' in signer) return wrong(signer.why)
  const others = await audits.listOfProof(db, row, request.nonce)
  return { proof: 'right', by: `${signer.by}${AS_TOLD[told]}`, ...(others.length > 0 && { others }) }
}

const AS_TOLD: Record<Extract<Told, string>, string> = {
  asked: '',
  one_of_many: ', for all copies that a filter found: the signature does not name this one',
}

type Signer = { by: string } | { why: string }

function signerOf(db: Db, request: Act, detail: Proved['detail']): Promise<Signer> | Signer {
  if (isAssertion(request.proof)) return byPasskey(db, request, request.proof)
  return isEnrolment(request.proof)
    ? byInvite(db, request, { enrolment: request.proof, detail })
    : { why: 'it is not the signed request of an act' }
}

async function byPasskey(db: Db, request: Act, assertion: Assertion): Promise<Signer> {
  const passkey = await credentials.find(db, assertion.credential_id)
  if (passkey?.personId !== request.person_id) return { why: 'the store has no such passkey of this person' }
  const origin = originOf(assertion.client_data_json)
  if (origin === undefined || URL.parse(origin)?.hostname !== passkey.rpId)
    return { why: 'it was made on another domain than that of the passkey' }
  const { installationId } = await installation.get(db)
  const asked = { challenge: challengeOf(request, installationId), origin, rpId: passkey.rpId }
  // The counter has grown since.
  const verified = verifyAssertion(assertion, { ...passkey, signCount: 0, ...asked })
  return typeof verified === 'string'
    ? { why: `the passkey did not sign it (${verified})` }
    : { by: `passkey ${assertion.credential_id}, on ${origin}` }
}

async function byInvite(
  db: Db,
  request: Act,
  { enrolment, detail }: { enrolment: Enrolment; detail: Proved['detail'] },
): Promise<Signer> {
  const { subject } = request
  const invite = UUID.test(subject) ? await invites.find(db, subject) : undefined
  if (!invite) return { why: 'the store has no such invite' }
  // The enrolment names the invite, and that says who the person is to be. Somebody who was here before gets no rights by it.
  const { name, roles, entities, personId } = invite
  const granted = personId === null ? [roles, entities] : [undefined, undefined]
  if (!isDeepStrictEqual([detail['name'], detail['roles'], detail['entities']], [name, ...granted]))
    return { why: 'the invite is for another name, roles or entities' }
  const { installationId } = await installation.get(db)
  return isSignedByInvite(invite.publicKey, enrolment, challengeOf(request, installationId))
    ? { by: `the key in invite ${subject}` }
    : { why: 'the key in the invite did not sign it' }
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

function originOf(clientData: string): string | undefined {
  const bytes = bytesOf(clientData)
  const origin = bytes && readObject(bytes)?.['origin']
  return typeof origin === 'string' ? origin : undefined
}

/** `asked`: exactly this; `one_of_many`: on all copies that a filter found, and the signature names none of them. */
type Told = 'asked' | 'one_of_many' | { differs: string }

type Row = Pick<AuditRow, 'subject' | 'outcome' | 'detail'>
type Facts = Record<string, unknown>

/**
 * Whether the row says what its proof asks for. Many logins may write a row and read the proofs of others, so a proof says
 * nothing about a row that names another subject, reason or fact.
 */
function toldBy(row: Row, request: Act): Told {
  const { on, reach, facts } = rowOf(request.act)
  const reason = reach === 'own' ? null : request.reason
  if ((row.detail['reason'] ?? null) !== reason) return { differs: 'reason' }
  if (on === 'failed') return onFailed(row, request)
  const subject = on === 'invited' ? request.person_id : request.subject
  if (row.subject !== subject) return { differs: 'subject' }
  return differing(row, facts(request)) ?? 'asked'
}

function differing({ outcome, detail }: Omit<Row, 'subject'>, facts: Facts): { differs: string } | undefined {
  const isWrong = ([name, value]: [string, unknown]) =>
    (outcome === 'done' || Object.hasOwn(detail, name)) && !isDeepStrictEqual(detail[name], value)
  const found = Object.entries(facts).find(isWrong)
  return found && { differs: found[0] }
}

/** An act on one copy, the row of one on many, or the row of one copy of these. */
function onFailed(row: Row, request: Act): Told {
  const parameters = FailedParameters.parse(request.parameters)
  const { kind } = parameters
  const isMany = 'filter' in parameters || 'ids' in parameters
  if (row.subject === request.subject) {
    const selection =
      'ids' in parameters
        ? { ticked: parameters.ids.length }
        : 'filter' in parameters
          ? { filter: parameters.filter, count: parameters.count, up_to: parameters.up_to }
          : {}
    return differing(row, { kind, ...selection, ...(isMany && { ids_sha256: request.seen }) }) ?? 'asked'
  }
  if (!isMany || request.subject !== failedSubject(parameters)) return { differs: 'subject' }
  if ('ids' in parameters)
    return parameters.ids.includes(row.subject) ? (differing(row, { kind }) ?? 'asked') : { differs: 'subject' }
  const { since: _, ...filter } = parameters.filter
  return differing(row, { kind, ...filter }) ?? 'one_of_many'
}
