// The installation's public keys for a reader of results that has the store: it reads them again when a result names a
// key that it doesn't know.
import type { KeyObject } from 'node:crypto'
import type { Clock } from '../src/clock.ts'
import type { Algorithm } from '../src/job/envelope/signature.ts'
import { importPublicJwk, type Jwk } from '../src/vault/client-key.ts'
import type { TrustedKeys } from './results.ts'

/** Results by unknown keys, forged ones too, cause no more than one reading in this time. */
const READ_MS = 1_000

interface StoredKey {
  kid: string
  alg: Algorithm
  publicJwk: Jwk
}

/** `list` reads them from the store. */
export async function openStoredKeys(list: () => Promise<StoredKey[]>, clock: Clock): Promise<TrustedKeys> {
  const keys = new Map<string, { alg: Algorithm; publicKey: KeyObject }>()
  let readAt = Number.NEGATIVE_INFINITY
  async function read(): Promise<void> {
    readAt = clock()
    for (const { kid, alg, publicJwk } of await list())
      keys.set(kid, { alg, publicKey: importPublicJwk(publicJwk).key })
  }
  await read()
  return {
    keys,
    async renew() {
      if (clock() - readAt >= READ_MS) await read()
    },
  }
}
