// The detached signature (RFC 7515, appendix F) beside a manifest: the client's JWS over the bytes of the file, without
// the payload. The manifest's content plays no part here.
import type { KeyObject } from 'node:crypto'
import { type SigningKey, signText, verify } from '../src/job/envelope/envelope.ts'
import { ALGORITHMS, type Algorithm } from '../src/job/envelope/signature.ts'

const MANIFEST_TYP = 'tokenmill-manifest+jws'

/** Returns `header..signature` for `bytes`, which must be UTF-8. */
export function signDetached(bytes: Buffer, key: Omit<SigningKey, 'clientId'>): string {
  const jws = signText(bytes.toString('utf8'), key, MANIFEST_TYP)
  return jws.replace(/\.[^.]*\./, '..')
}

/** Whether one of `keys` signed these bytes as a manifest. The `kid` chooses the key. */
export function verifyDetached(
  bytes: Buffer,
  jws: string,
  keys: readonly { kid: string; alg: Algorithm; publicKey: KeyObject }[],
): boolean {
  const [, head = '', signature = ''] = /^([A-Za-z0-9_-]+)\.\.([A-Za-z0-9_-]+)$/.exec(jws) ?? []
  const header = readHeader(head)
  const key = keys.find(
    ({ kid, alg }) => kid === header?.['kid'] && alg === header?.['alg'] && ALGORITHMS.includes(alg),
  )
  if (!key || header?.['typ'] !== MANIFEST_TYP) return false
  return verify(`${head}.${bytes.toString('base64url')}.${signature}`, key)
}

function readHeader(head: string): Record<string, unknown> | undefined {
  try {
    return JSON.parse(Buffer.from(head, 'base64url').toString('utf8')) as Record<string, unknown>
  } catch {
    return undefined
  }
}
