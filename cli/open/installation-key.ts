// The keys with which the installation signs results: how one is made, how it is opened, and how a worker process
// begins to sign with the next one. Their private halves are stored sealed.
import { createPrivateKey, type JsonWebKey } from 'node:crypto'
import { isSigningKeyGranted } from '../../src/acts/grants.ts'
import { beginWhenDue, STATEMENT_MS } from '../../src/acts/signing-turn.ts'
import { ConfigError } from '../../src/config.ts'
import type { InstallationKey, Signing } from '../../src/job/answer/result.ts'
import type { Lifetime } from '../../src/lifetime.ts'
import { describeError, type Logger } from '../../src/logger.ts'
import { every } from '../../src/recurring.ts'
import * as signingKeys from '../../src/store/access/signing-keys.ts'
import type { Db, Store } from '../../src/store/pool.ts'
import { makeSigningKey } from '../../src/vault/client-key.ts'
import { type PrivateHalves, signingHalfName } from '../../src/vault/private-half.ts'
import type { LiveRing } from '../../src/vault/ring/key-ring.ts'
import { withReload } from '../../src/vault/ring/reload.ts'

/** Makes a new Ed25519 pair, which the caller stores. */
export async function makeInstallationKey(halves: PrivateHalves): Promise<signingKeys.NewSigningKey> {
  const { kid, alg, publicJwk, privateJwk } = makeSigningKey()
  const key = createPrivateKey({ key: privateJwk.reveal() as JsonWebKey, format: 'jwk' })
  const raw = key.export({ format: 'der', type: 'pkcs8' })
  return { kid, alg, publicJwk, ...(await halves.seal(raw, signingHalfName(kid))) }
}

/** The key that signs now. Throws `Fault('key_unavailable')` if it can't be opened. */
export async function openInstallationKey(db: Db, halves: PrivateHalves): Promise<InstallationKey> {
  const { active } = await signingKeys.findState(db, 0)
  if (!active) throw new ConfigError('DATABASE_URL: the database has no signing key; run `tokenmill schema upgrade`')
  return open(active, halves)
}

async function open(record: signingKeys.SigningKeyRecord, halves: PrivateHalves): Promise<InstallationKey> {
  const raw = await halves.open(record, signingHalfName(record.kid))
  const privateKey = createPrivateKey({ key: raw, format: 'der', type: 'pkcs8' })
  raw.fill(0)
  return { kid: record.kid, alg: record.alg, privateKey }
}

const LOOK_MS = 2_000

/** Only then the store is asked whether the key is due: its clock decides. */
const NEAR_MS = 60_000
const isNear = ({ activeAt }: { activeAt: number }) => activeAt <= Date.now() + NEAR_MS

/** `names`: the keys that this process can sign with, as its heartbeat names them (`NewProcess.keys`). */
export type OwnSigning = Signing & { names: readonly string[] }

/** The name of a key in the heartbeat of a process that can sign with it. */
export const signerName = signingHalfName

/**
 * Opens the key that signs now, and looks every 2 s for a newer one. If an announced key is due and this process can sign
 * with it, signing with it begins. If a look fails, the process signs on with the key that it has.
 */
export async function watchSigning(
  { log, lifetime }: { log: Logger; lifetime: Lifetime },
  { store, halves }: { store: Store; halves: PrivateHalves },
): Promise<() => OwnSigning> {
  const opened = new Map<string, InstallationKey>()

  async function openOnce(record: signingKeys.SigningKeyRecord): Promise<InstallationKey> {
    const key = opened.get(record.kid) ?? (await open(record, halves))
    opened.set(record.kid, key)
    return key
  }
  async function look(): Promise<OwnSigning> {
    const { active, announced, statements } = await signingKeys.findState(store, STATEMENT_MS)
    if (!active) throw new ConfigError('DATABASE_URL: the database has no signing key; run `tokenmill schema upgrade`')
    const key = await openOnce(active)
    const next = announced && (await openOnce(announced).catch(cantOpen))
    if (next && isNear(announced) && (await beginWhenDue(store, next.kid).catch(cantBegin))) return look()
    const kids = next ? [key.kid, next.kid] : [key.kid]
    for (const kid of opened.keys()) if (!kids.includes(kid)) opened.delete(kid)
    return { key, newKeys: statements, names: kids.map(signerName) }
  }
  function cantOpen(error: unknown): undefined {
    log.error(
      { error: describeError(error) },
      'the announced signing key cannot be opened here; it does not begin here',
    )
  }
  function cantBegin(error: unknown): undefined {
    log.error({ error: describeError(error) }, 'the announced signing key cannot begin yet; the former key signs on')
  }
  let current = await look()
  const stop = every(
    LOOK_MS,
    async () => {
      current = await look()
    },
    { log },
  )
  lifetime.onClose('signing keys', stop)
  return () => current
}

/** The most keys that a client's file may hold. */
export const CLIENT_KEYS_MAX = 32

/** The signing keys that tokenmill made, newest first. */
export async function findOwnKeys(
  db: Db,
  ring: Pick<LiveRing, 'grantMacBy' | 'refresh'>,
): Promise<signingKeys.PublicSigningKey[]> {
  const keys = await signingKeys.findPublic(db)
  return withReload(ring, async () => keys.filter(key => isSigningKeyGranted(ring, key)))
}

/**
 * The newest public halves as a JWKS for a client's file, newest first, up to `CLIENT_KEYS_MAX`. Throws `ConfigError`
 * if the database has no signing key that this installation made.
 */
export async function findInstallationKeys(
  db: Db,
  ring: Pick<LiveRing, 'grantMacBy' | 'refresh'>,
): Promise<{ keys: Record<string, unknown>[] }> {
  const keys = await findOwnKeys(db, ring)
  if (keys.length === 0)
    throw new ConfigError(
      'DATABASE_URL: no signing key in the database was written by tokenmill as it is there now; see `tokenmill doctor`',
    )
  return { keys: keys.slice(0, CLIENT_KEYS_MAX).map(key => key.publicJwk) }
}
