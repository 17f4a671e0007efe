// The secret of an invite stays in the browser that opened the link. Two values are derived from it (HKDF-SHA-256): one by which
// the console finds the invite, and a key that signs the enrolment. Neither tells the other. producers/console/browser/passkey.js
// derives and signs the same way.
import { createHash, createPrivateKey, createPublicKey, hkdfSync, type KeyObject, verify } from 'node:crypto'
import type { Enrolment } from '../../job/system/act.ts'

const LOOKUP = 'tokenmill link lookup'
const KEY = 'tokenmill invite key'
const VALUE_BYTES = 32

/** What stands before the 32 bytes of a seed in PKCS#8, and before those of a public key in SPKI (RFC 8410). */
const PKCS8_PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex')
const SPKI_PREFIX = Buffer.from('302a300506032b6570032100', 'hex')

/** The value by which the console finds the link with this secret: 32 bytes, base64url. */
export function lookupOf(secret: string): string {
  return derive(secret, LOOKUP).toString('base64url')
}

/** What the store keeps of `lookupOf`: SHA-256 of its text. */
export function hashOfLookup(lookup: string): Buffer {
  return createHash('sha256').update(lookup).digest()
}

/** The public half of the key in an invite with this secret: Ed25519, 32 bytes. */
export function publicKeyOf(secret: string): Buffer {
  const der = Buffer.concat([PKCS8_PREFIX, derive(secret, KEY)])
  const privateKey = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' })
  return createPublicKey(privateKey).export({ format: 'der', type: 'spki' }).subarray(SPKI_PREFIX.length)
}

/**
 * Whether the key of the invite signed this enrolment: this act and this new passkey. `publicKey`: `publicKeyOf`. `challenge`:
 * of the act, 32 bytes.
 */
export function isSignedByInvite(publicKey: Buffer, proof: Enrolment, challenge: Buffer): boolean {
  const key = importPublicKey(publicKey)
  return verify(null, signedText(proof, challenge), key, Buffer.from(proof.signature, 'base64url'))
}

/** Four lines, without one at the end: a fixed text, then the challenge and two SHA-256, base64url. */
function signedText(proof: Omit<Enrolment, 'signature'>, challenge: Buffer): Buffer {
  const hashOf = (base64url: string) =>
    createHash('sha256').update(Buffer.from(base64url, 'base64url')).digest('base64url')
  const { attestation_object: attestation, client_data_json: clientData } = proof
  const lines = [challenge.toString('base64url'), hashOf(attestation), hashOf(clientData)]
  return Buffer.from(['tokenmill person.enrol', ...lines].join('\n'))
}

function importPublicKey(publicKey: Buffer): KeyObject {
  return createPublicKey({ key: Buffer.concat([SPKI_PREFIX, publicKey]), format: 'der', type: 'spki' })
}

function derive(secret: string, info: string): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, '', info, VALUE_BYTES))
}
