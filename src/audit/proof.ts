// Checks again what an audit row keeps as the proof of who acted: what an operator's client signed, or a person. It takes public
// keys from the store, also those that are revoked by now, and doesn't check their codes: whoever owns the database can put
// another key there. `audit verify` says whether the row is as it was written. A right proof says what was asked, not what came of it.
import { readCompact, verify } from '../job/envelope/envelope.ts'
import type { AuditRow } from '../store/access/audits.ts'
import * as clients from '../store/access/clients.ts'
import type { Db } from '../store/pool.ts'
import { importPublicJwk } from '../vault/client-key.ts'

/**
 * `none`: the row keeps no proof. `why`: one sentence. `others`: the ids of other rows of the same act and subject that keep the
 * same proof, up to ten. It was used once, so at most one of them is true.
 */
export type ProofVerdict =
  | { proof: 'none' }
  | { proof: 'right'; by: string; others?: number[] }
  | { proof: 'wrong'; why: string }

export type Proved = Pick<AuditRow, 'auditId' | 'actor' | 'action' | 'subject' | 'outcome' | 'detail'>

/** Checks the proof of a person's act. */
export type CheckPersonProof = (db: Db, row: Proved, proof: string) => Promise<ProofVerdict>

/** `ofPerson`: undefined where no person acts. */
export async function checkProof(db: Db, row: Proved, ofPerson: CheckPersonProof | undefined): Promise<ProofVerdict> {
  const { proof } = row.detail
  if (typeof proof !== 'string') return { proof: 'none' }
  if (!row.actor.startsWith('person:')) return ofClient(db, row, proof)
  return ofPerson ? ofPerson(db, row, proof) : wrong('nothing here knows what a person signs')
}

export const wrong = (why: string): ProofVerdict => ({ proof: 'wrong', why })

async function ofClient(db: Db, { actor, action, subject, detail }: Proved, proof: string): Promise<ProofVerdict> {
  const { header, payload } = readCompact(proof) ?? {}
  const clientId = payload?.['iss']
  if (typeof clientId !== 'string' || `client:${clientId}` !== actor) return wrong('another client signed it')
  if (payload?.['action'] !== action || payload['subject'] !== subject) return wrong('it is of another act')
  const { reason } = detail
  if (reason !== undefined && reason !== payload['reason']) return wrong('it gives another reason')
  const key = (await clients.findClientKeys(db, clientId)).find(({ kid }) => kid === header?.['kid'])
  if (!key) return wrong('the store has no such key of this client')
  return verify(proof, { alg: key.alg, publicKey: importPublicJwk(key.publicJwk).key })
    ? { proof: 'right', by: `key ${key.kid} of client ${clientId}` }
    : wrong('the client’s key did not sign it')
}
