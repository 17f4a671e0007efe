// The numbers of scheme tokens, sealed under a data key of their own, so that the process that shows them (the gateway)
// can have that key alone, in a file. It opens no card.
import { createSecretKey, type KeyObject, randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { ConfigError } from '../config.ts'
import { Fault } from '../errors.ts'
import { Secret } from '../secret.ts'
import { NONCE_BYTES, openWith, sealWith } from './aead.ts'
import { Jwk } from './client-key.ts'

const KEY_BYTES = 32
const USE = 'tokenmill-network-token'

/** A key and its version on the ring. */
export interface NetworkTokenKey {
  key: KeyObject
  version: number
}

/** `provisionId` names the row of the number: it opens in no other row. */
export function sealNetworkToken(key: KeyObject, number: Secret, provisionId: string): Buffer {
  return sealWith(key, randomBytes(NONCE_BYTES), number.reveal(), aadOf(provisionId))
}

/** Throws `Fault('defect')` for bytes of another row or key. */
export function openNetworkToken(key: KeyObject, sealed: Buffer, provisionId: string): Secret {
  try {
    return new Secret(openWith(key, sealed, aadOf(provisionId)).toString('latin1'))
  } catch (cause) {
    throw new Fault('defect', cause)
  }
}

const aadOf = (provisionId: string) => Buffer.from(`network-token ${provisionId}`)

/** The text of the key's file: a JWK, which is a secret. */
export function networkTokenFileText({ key, version }: NetworkTokenKey): Secret {
  const jwk = { ...key.export({ format: 'jwk' }), kid: String(version), use: USE }
  return new Secret(`${JSON.stringify(jwk, null, 2)}\n`)
}

/** Throws `ConfigError` where the file is absent or is no such key. */
export async function readNetworkTokenFile(path: string): Promise<NetworkTokenKey> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    const what =
      error.code === 'ENOENT' ? 'does not exist; `tokenmill schema upgrade` makes it' : `can't be read (${error.code})`
    throw new ConfigError(`${path} ${what}`)
  })
  const read = keyOf(text)
  if (!read) throw new ConfigError(`${path} is not the key of network tokens`)
  return read
}

function keyOf(text: string): NetworkTokenKey | undefined {
  try {
    const { kty, k, kid, use } = Jwk.parse(JSON.parse(text))
    const raw = kty === 'oct' && use === USE && typeof k === 'string' ? Buffer.from(k, 'base64url') : undefined
    const version = Number(kid)
    if (raw?.length !== KEY_BYTES || !Number.isSafeInteger(version)) return undefined
    const key = createSecretKey(raw)
    raw.fill(0)
    return { key, version }
  } catch {
    return undefined
  }
}
