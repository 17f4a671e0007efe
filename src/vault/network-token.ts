// The numbers of scheme tokens, sealed with a separate data key. So the gateway, which shows the numbers, can get that key,
// with which it can't open cards (ring/shared-keys.ts; hosts of release 0.3 have it in a file).
import { createSecretKey, type KeyObject, randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { ConfigError } from '../config.ts'
import { Fault } from '../errors.ts'
import { Secret } from '../secret.ts'
import { NONCE_BYTES, openWith, sealWith } from './aead.ts'
import { Jwk } from './client-key.ts'

const KEY_BYTES = 32
const USE = 'tokenmill-network-token'

/** The key and its version on the key ring. */
export interface NetworkTokenKey {
  key: KeyObject
  version: number
}

/** Seals a number. `provisionId` names the number's row; the bytes can't be opened for another row. */
export function sealNetworkToken(key: KeyObject, number: Secret, provisionId: string): Buffer {
  return sealWith(key, randomBytes(NONCE_BYTES), number.reveal(), aadOf(provisionId))
}

/** Opens a number. Throws `Fault('defect')` if the bytes are another row's or another key's. */
export function openNetworkToken(key: KeyObject, sealed: Buffer, provisionId: string): Secret {
  try {
    return new Secret(openWith(key, sealed, aadOf(provisionId)).toString('latin1'))
  } catch (cause) {
    throw new Fault('defect', cause)
  }
}

const aadOf = (provisionId: string) => Buffer.from(`network-token ${provisionId}`)

/** The content of the key file: a JWK, which is a secret. */
export function networkTokenFileText({ key, version }: NetworkTokenKey): Secret {
  const jwk = { ...key.export({ format: 'jwk' }), kid: String(version), use: USE }
  return new Secret(`${JSON.stringify(jwk, null, 2)}\n`)
}

/** Reads the key file. Throws `ConfigError` if it is missing or holds no such key. */
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
