// The detached signature (RFC 7515, appendix F) beside a manifest or a sign-off pack: the client's JWS over the bytes of
// the file, without the payload. The content of the file plays no part here.
import type { KeyObject } from 'node:crypto'
import { type SigningKey, signText, verify } from '../src/job/envelope/envelope.ts'
import { ALGORITHMS, type Algorithm } from '../src/job/envelope/signature.ts'

const MANIFEST_TYP = 'tokenmill-manifest+jws'

/** A public key of a client. */
export interface VerifyKey {
  kid: string
  alg: Algorithm
  publicKey: KeyObject
}

/** Returns `header..signature`. */
export function signDetached(bytes: Buffer, key: Omit<SigningKey, 'clientId'>): string {
  const jws = signText(bytes, key, MANIFEST_TYP)
  return jws.replace(/\.[^.]*\./, '..')
}

/** Whether one of `keys` signed these bytes as a manifest. The `kid` chooses the key. */
export function verifyDetached(bytes: Buffer, jws: string, keys: readonly VerifyKey[]): boolean {
  return signerOf(bytes, jws, keys) !== undefined
}

/** The one of `keys` that signed these bytes as a manifest. */
export function signerOf(bytes: Buffer, jws: string, keys: readonly VerifyKey[]): VerifyKey | undefined {
  const [, head = '', signature = ''] = /^([A-Za-z0-9_-]+)\.\.([A-Za-z0-9_-]+)$/.exec(jws) ?? []
  const header = readHeader(head)
  const key = keys.find(
    ({ kid, alg }) => kid === header?.['kid'] && alg === header?.['alg'] && ALGORITHMS.includes(alg),
  )
  if (!key || header?.['typ'] !== MANIFEST_TYP) return undefined
  return verify(`${head}.${bytes.toString('base64url')}.${signature}`, key) ? key : undefined
}

function readHeader(head: string): Record<string, unknown> | undefined {
  try {
    return JSON.parse(Buffer.from(head, 'base64url').toString('utf8')) as Record<string, unknown>
  } catch {
    return undefined
  }
}
