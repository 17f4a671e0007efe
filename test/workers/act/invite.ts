// What a browser does with the link of an invite, on node:crypto and apart from the product's own reading of it.
import { createHash, createPrivateKey, hkdfSync, sign } from 'node:crypto'
import type { Enrolment } from '../../../src/job/system/act.ts'

/** Signs a new passkey with the key in the invite. `challenge`: of the act. */
export function signEnrolment(secret: string, challenge: Buffer, made: Omit<Enrolment, 'signature'>): Enrolment {
  const seed = Buffer.from(hkdfSync('sha256', secret, '', 'tokenmill invite key', 32))
  const der = Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), seed])
  const key = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' })
  const hashes = [made.attestation_object, made.client_data_json].map(hashOf)
  const text = ['tokenmill person.enrol', challenge.toString('base64url'), ...hashes].join('\n')
  return { ...made, signature: sign(null, Buffer.from(text), key).toString('base64url') }
}

const hashOf = (base64url: string) =>
  createHash('sha256').update(Buffer.from(base64url, 'base64url')).digest('base64url')
