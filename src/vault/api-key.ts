// API keys of HTTP clients: stored as a keyed hash, compared in constant time. The key of the hash is a data key of the
// vault; a process without the key-encryption key (KEK) gets it by ring/shared-keys.ts, or in a file of its own.
import { createHmac, createSecretKey, type KeyObject, timingSafeEqual } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { ConfigError } from '../config.ts'
import { Secret } from '../secret.ts'
import { Jwk } from './client-key.ts'
import type { Hashed } from './ring/held-keys.ts'
import { withReload } from './ring/reload.ts'

const KEY_BYTES = 32
const NO_HASH = Buffer.alloc(KEY_BYTES)

/** The keyed hash: 32 bytes. */
export function hashApiKey(key: KeyObject, userId: string, apiKey: Secret): Buffer {
  return createHmac('sha256', key).update(`${userId.toLowerCase()}\n${apiKey.reveal()}`, 'utf8').digest()
}

/** The keys of API keys that a process holds. */
export interface ApiKeyRing {
  apiKeyHash(userId: string, apiKey: Secret): Hashed
  apiKeyHashBy(userId: string, apiKey: Secret, keyVersion: number): Buffer
  refresh(): Promise<void>
}

/**
 * Whether the API key is right. It takes the same time for a user without a key (`null`) as for a wrong key. Throws
 * `Fault('key_unavailable')` if this process can't load the key under which `stored` was hashed.
 */
export async function apiKeyMatches(
  ring: ApiKeyRing,
  userId: string,
  apiKey: Secret,
  stored: Hashed | null,
): Promise<boolean> {
  const hash = await withReload(ring, async () =>
    stored ? ring.apiKeyHashBy(userId, apiKey, stored.keyVersion) : ring.apiKeyHash(userId, apiKey).hash,
  )
  const equal = timingSafeEqual(hash, stored?.hash.length === KEY_BYTES ? stored.hash : NO_HASH)
  return equal && stored !== null
}

/** The key and its version on the key ring. */
export interface ApiKeyKey {
  key: KeyObject
  version: number
}

/** The content of the key file: a JWK, which is a secret. */
export function apiKeyFileText({ key, version }: ApiKeyKey): Secret {
  const jwk = { ...key.export({ format: 'jwk' }), kid: String(version), use: 'tokenmill-api-key' }
  return new Secret(`${JSON.stringify(jwk, null, 2)}\n`)
}

/** Reads the key file. Throws `ConfigError` if it is missing or holds no such key. */
export async function readApiKeyFile(path: string): Promise<ApiKeyKey> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    const what =
      error.code === 'ENOENT' ? 'does not exist; `tokenmill schema upgrade` makes it' : `can't be read (${error.code})`
    throw new ConfigError(`${path} ${what}`)
  })
  const read = keyOf(text)
  if (!read) throw new ConfigError(`${path} is not the key of API keys`)
  return read
}

function keyOf(text: string): ApiKeyKey | undefined {
  try {
    const { kty, k, kid } = Jwk.parse(JSON.parse(text))
    const raw = kty === 'oct' && typeof k === 'string' ? Buffer.from(k, 'base64url') : undefined
    // A file of an earlier release names no version.
    const version = kid === undefined ? 1 : Number(kid)
    if (raw?.length !== KEY_BYTES || !Number.isSafeInteger(version)) return undefined
    const key = createSecretKey(raw)
    raw.fill(0)
    return { key, version }
  } catch {
    return undefined
  }
}
