// The key with which the installation signs results. It is made once; its private half is stored wrapped by the
// key-encryption key.
import { createPrivateKey, type JsonWebKey } from 'node:crypto'
import { ConfigError } from '../../src/config.ts'
import type { InstallationKey } from '../../src/job/result.ts'
import * as signingKeys from '../../src/store/access/signing-keys.ts'
import type { Db } from '../../src/store/pool.ts'
import { makeSigningKey } from '../../src/vault/client-key.ts'
import type { KeyProvider } from '../../src/vault/kek.ts'

const purposeOf = (kid: string) => `signing-key/${kid}`

/** Makes a new Ed25519 pair, which the caller stores. */
export async function makeInstallationKey(kek: KeyProvider): Promise<Omit<signingKeys.SigningKeyRecord, 'createdAt'>> {
  const { kid, alg, publicJwk, privateJwk } = makeSigningKey()
  const key = createPrivateKey({ key: privateJwk.reveal() as JsonWebKey, format: 'jwk' })
  const raw = key.export({ format: 'der', type: 'pkcs8' })
  const wrappedPrivate = await kek.wrap(raw, purposeOf(kid)).finally(() => raw.fill(0))
  return { kid, alg, publicJwk, wrappedPrivate }
}

/** The current signing key. Throws `Fault('key_unavailable')` if it can't be unwrapped. */
export async function openInstallationKey(db: Db, kek: KeyProvider): Promise<InstallationKey> {
  const record = await signingKeys.findNewest(db)
  if (!record) throw new ConfigError('DATABASE_URL: the database has no signing key; run `tokenmill schema upgrade`')
  const raw = await kek.unwrap(record.wrappedPrivate, purposeOf(record.kid))
  const privateKey = createPrivateKey({ key: raw, format: 'der', type: 'pkcs8' })
  raw.fill(0)
  return { kid: record.kid, alg: record.alg, privateKey }
}

/** The public halves as a JWKS, with which callers verify results. */
export async function findInstallationKeys(db: Db): Promise<{ keys: Record<string, unknown>[] }> {
  return { keys: (await signingKeys.findPublic(db)).map(key => key.publicJwk) }
}
