// API keys of HTTP clients: stored as a keyed hash, compared in constant time. The key of the hash is a data key of the
// vault; a process without the key-encryption key (KEK) gets it by ring/shared-keys.ts.
import { createHmac, type KeyObject, timingSafeEqual } from 'node:crypto'
import type { Secret } from '../../secret.ts'
import type { Hashed } from './held-keys.ts'
import { withReload } from './reload.ts'

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
