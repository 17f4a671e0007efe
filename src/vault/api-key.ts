// API keys of HTTP clients: stored as a keyed hash, compared in constant time. The key of the hash is a data key of the
// vault; a process without the key-encryption key (KEK) gets this one key in a file.
import { createHmac, createSecretKey, type KeyObject, timingSafeEqual } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { ConfigError } from '../config.ts'
import { Secret } from '../secret.ts'
import { Jwk } from './client-key.ts'

const KEY_BYTES = 32
const NO_HASH = Buffer.alloc(KEY_BYTES)

/** The keyed hash: 32 bytes. */
export function hashApiKey(key: KeyObject, userId: string, apiKey: Secret): Buffer {
  return createHmac('sha256', key).update(`${userId.toLowerCase()}\n${apiKey.reveal()}`, 'utf8').digest()
}

/** Whether the API key is right. It takes the same time for a user without a key (`null`) as for a wrong key. */
export function apiKeyMatches(key: KeyObject, userId: string, apiKey: Secret, stored: Buffer | null): boolean {
  const equal = timingSafeEqual(hashApiKey(key, userId, apiKey), stored?.length === KEY_BYTES ? stored : NO_HASH)
  return equal && stored !== null
}

/** The content of the key file: a JWK, which is a secret. */
export function apiKeyFileText(key: KeyObject): Secret {
  return new Secret(`${JSON.stringify({ ...key.export({ format: 'jwk' }), use: 'tokenmill-api-key' }, null, 2)}\n`)
}

/** Reads the key file. Throws `ConfigError` if it is missing or holds no such key. */
export async function readApiKeyFile(path: string): Promise<KeyObject> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    const what =
      error.code === 'ENOENT' ? 'does not exist; `tokenmill schema upgrade` makes it' : `can't be read (${error.code})`
    throw new ConfigError(`${path} ${what}`)
  })
  const raw = rawOf(text)
  if (raw?.length !== KEY_BYTES) throw new ConfigError(`${path} is not the key of API keys`)
  const key = createSecretKey(raw)
  raw.fill(0)
  return key
}

function rawOf(text: string): Buffer | undefined {
  try {
    const { kty, k } = Jwk.parse(JSON.parse(text))
    return kty === 'oct' && typeof k === 'string' ? Buffer.from(k, 'base64url') : undefined
  } catch {
    return undefined
  }
}
