// Reads a JWS that the installation signed. The reader already holds the installation's public keys. The caller
// interprets the payload.
import type { KeyObject } from 'node:crypto'
import { type Algorithm, verifyCompact } from './signature.ts'

/** The installation's public keys by `kid`. */
export type InstallationKeys = ReadonlyMap<string, { alg: Algorithm; publicKey: KeyObject }>

const HEADER_KEYS = new Set(['alg', 'kid', 'typ'])

/** The payload; undefined unless one of `keys` signed it with this `typ`. Throws for a payload that isn't JSON. */
export function openSigned(jws: string, typ: string, keys: InstallationKeys): Record<string, unknown> | undefined {
  const [head = '', payload = '', ...rest] = jws.split('.')
  if (rest.length !== 1) return undefined
  const header = partOf(head)
  const key = keys.get(String(header['kid']))
  if (!key || header['alg'] !== key.alg || header['typ'] !== typ) return undefined
  if (!Object.keys(header).every(name => HEADER_KEYS.has(name)) || !verifyCompact(jws, key)) return undefined
  return partOf(payload)
}

function partOf(base64url: string): Record<string, unknown> {
  return JSON.parse(Buffer.from(base64url, 'base64url').toString('utf8')) as Record<string, unknown>
}
