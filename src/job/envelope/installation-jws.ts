// Reads a JWS that the installation signed. The reader already holds the installation's public keys. The caller
// interprets the payload.
import type { KeyObject } from 'node:crypto'
import { type Algorithm, verifyCompact } from './signature.ts'

/** The installation's public keys by `kid`. */
export type InstallationKeys = ReadonlyMap<string, { alg: Algorithm; publicKey: KeyObject }>

const HEADER_KEYS = new Set(['alg', 'kid', 'typ'])

export interface Unverified {
  jws: string
  kid: string
  alg: unknown
  payload: Record<string, unknown>
}

/** The payload; undefined unless one of `keys` signed it with this `typ`. Throws if header or payload isn't JSON. */
export function openSigned(jws: string, typ: string, keys: InstallationKeys): Record<string, unknown> | undefined {
  const unverified = readUnverified(jws, typ)
  return unverified && isSigned(unverified, keys) ? unverified.payload : undefined
}

/**
 * The parts of a JWS, before its signature is verified; undefined for another `typ` or further members of the header.
 * Throws if header or payload isn't JSON.
 */
export function readUnverified(jws: string, typ: string): Unverified | undefined {
  const [head = '', payload = '', ...rest] = jws.split('.')
  if (rest.length !== 1) return undefined
  const header = partOf(head)
  if (header['typ'] !== typ || !Object.keys(header).every(name => HEADER_KEYS.has(name))) return undefined
  return { jws, kid: String(header['kid']), alg: header['alg'], payload: partOf(payload) }
}

/** Whether one of `keys` made the signature. */
export function isSigned({ jws, kid, alg }: Unverified, keys: InstallationKeys): boolean {
  const key = keys.get(kid)
  return key !== undefined && alg === key.alg && verifyCompact(jws, key)
}

function partOf(base64url: string): Record<string, unknown> {
  return JSON.parse(Buffer.from(base64url, 'base64url').toString('utf8')) as Record<string, unknown>
}
