// Checks again what an audit row keeps as the proof of who acted: what a person's passkey signed, or an operator's client. It takes
// public keys from the store, also those that are revoked by now, and doesn't check their codes: whoever owns the database can put
// another key there. `audit verify` says whether the row is as it was written.
import { createHash } from 'node:crypto'
import { readCompact, verify } from '../job/envelope/envelope.ts'
import { readObject } from '../job/envelope/strict-json.ts'
import { Act, isAssertion } from '../job/system/act.ts'
import type { AuditRow } from '../store/access/audits.ts'
import * as clients from '../store/access/clients.ts'
import * as installation from '../store/installation.ts'
import * as credentials from '../store/person/credentials.ts'
import type { Db } from '../store/pool.ts'
import { importPublicJwk } from '../vault/client-key.ts'
import { verifyAssertion } from '../vault/passkey/assertion.ts'
import { challengeOf } from '../vault/passkey/challenge.ts'
import { bytesOf } from '../vault/passkey/client-data.ts'

/** `none`: the row keeps no proof. `why`: one sentence. */
export type ProofVerdict = { proof: 'none' } | { proof: 'right'; by: string } | { proof: 'wrong'; why: string }

type Proved = Pick<AuditRow, 'actor' | 'action' | 'subject' | 'detail'>

export async function checkProof(db: Db, row: Proved): Promise<ProofVerdict> {
  const { proof } = row.detail
  if (typeof proof !== 'string') return { proof: 'none' }
  return row.actor.startsWith('person:') ? ofPerson(db, row, proof) : ofClient(db, row, proof)
}

const wrong = (why: string): ProofVerdict => ({ proof: 'wrong', why })

async function ofPerson(db: Db, { actor, action, detail }: Proved, proof: string): Promise<ProofVerdict> {
  if (createHash('sha256').update(proof).digest('hex') !== detail['proof_sha256'])
    return wrong('its SHA-256 is not that of the row')
  const request = Act.safeParse(readObject(Buffer.from(proof))).data
  if (!request || !isAssertion(request.proof)) return wrong('it is not the signed request of an act')
  if (request.act !== action || `person:${request.person_id}` !== actor) return wrong('it is of another act or person')
  const { proof: assertion } = request
  const passkey = await credentials.find(db, assertion.credential_id)
  if (!passkey || `person:${passkey.personId}` !== actor) return wrong('the store has no such passkey of this person')
  const origin = originOf(assertion.client_data_json)
  if (origin === undefined || URL.parse(origin)?.hostname !== passkey.rpId)
    return wrong('it was made on another domain than that of the passkey')
  const { installationId } = await installation.get(db)
  const asked = { challenge: challengeOf(request, installationId), origin, rpId: passkey.rpId }
  // The counter has grown since.
  const verified = verifyAssertion(assertion, { ...passkey, signCount: 0, ...asked })
  return typeof verified === 'string'
    ? wrong(`the passkey did not sign it (${verified})`)
    : { proof: 'right', by: `passkey ${assertion.credential_id}, on ${origin}` }
}

function originOf(clientData: string): string | undefined {
  const bytes = bytesOf(clientData)
  const origin = bytes && readObject(bytes)?.['origin']
  return typeof origin === 'string' ? origin : undefined
}

async function ofClient(db: Db, { actor, action, subject }: Proved, proof: string): Promise<ProofVerdict> {
  const { header, payload } = readCompact(proof) ?? {}
  const clientId = payload?.['iss']
  if (typeof clientId !== 'string' || `client:${clientId}` !== actor) return wrong('another client signed it')
  if (payload?.['action'] !== action || payload['subject'] !== subject) return wrong('it is of another act')
  const key = (await clients.findClientKeys(db, clientId)).find(({ kid }) => kid === header?.['kid'])
  if (!key) return wrong('the store has no such key of this client')
  return verify(proof, { alg: key.alg, publicKey: importPublicJwk(key.publicJwk).key })
    ? { proof: 'right', by: `key ${key.kid} of client ${clientId}` }
    : wrong('the client’s key did not sign it')
}
