// The file of a host with the installation's signing keys that its gateway, scheduler and console believe (the pin), and the
// file beside it of those that were announced since. `schema upgrade` makes the first, those roles write the second. Neither
// is a secret.
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { importInstallationKey } from '../../producers/client/client-file.ts'
import { openTrustedKeys, readNewKeys, type TrustedKeys } from '../../producers/client/trusted-keys.ts'
import { openSigningKeys, type SigningKeys } from '../../producers/signing-keys.ts'
import { systemClock } from '../../src/clock.ts'
import { type Config, ConfigError } from '../../src/config.ts'
import type { InstallationKeys } from '../../src/job/envelope/installation-jws.ts'
import type { Lifetime } from '../../src/lifetime.ts'
import type { Logger } from '../../src/logger.ts'
import type { PublicSigningKey } from '../../src/store/access/signing-keys.ts'
import * as signingKeys from '../../src/store/access/signing-keys.ts'
import type { Store } from '../../src/store/pool.ts'
import { Jwk } from '../../src/vault/client-key.ts'
import type { LiveRing } from '../../src/vault/ring/key-ring.ts'
import type { UngrantedCounter } from '../../src/vault/ring/ungranted.ts'
import { CLIENT_KEYS_MAX, findOwnKeys } from './installation-key.ts'
import { jsonText, writePrivate } from './key-files.ts'

const PinnedKeys = z.strictObject({ keys: z.array(Jwk) })

const COPY_ANEW =
  'run `tokenmill schema upgrade` on a host with the key-encryption key, and copy the file of that name from there'

export const pinnedKeysPath = (dataDir: string) => join(dataDir, 'system', 'installation-keys.json')

/** Statements of announced keys. */
const newKeysPath = (dataDir: string) => join(dataDir, 'system', 'installation.new-keys.json')

/** Pins the keys that are missing. Returns the file if it was written. The caller holds the upgrade's lock. */
export async function ensurePinnedKeys(
  { store, ring }: { store: Store; ring: Pick<LiveRing, 'grantMacBy' | 'refresh'> },
  dataDir: string,
): Promise<string[]> {
  const path = pinnedKeysPath(dataDir)
  const pinned = existsSync(path) ? await readPinned(path) : undefined
  const keys = keysToPin(await findOwnKeys(store, ring), pinned)
  if (keys.length === pinned?.length) return []
  await writePrivate(path, jsonText({ keys }), { replace: true })
  return [path]
}

/**
 * The signing keys for the file: all if there is none yet, else those that it has and the live ones. A retired key that an
 * operator took out, because somebody else may have it, stays out.
 */
function keysToPin(own: readonly PublicSigningKey[], pinned: readonly Jwk[] | undefined): Jwk[] {
  if (pinned === undefined) return own.slice(0, CLIENT_KEYS_MAX).map(({ publicJwk }) => publicJwk)
  const known = new Set(pinned.map(jwk => jwk['kid']))
  const added = own.filter(({ kid, state }) => state !== 'RETIRED' && !known.has(kid))
  return [...added.map(({ publicJwk }) => publicJwk), ...pinned]
}

interface Host {
  config: Pick<Config, 'dataDir' | 'audience'>
  log: Logger
}

/** Opens both files. Throws `ConfigError` if the host has no pin, or one of another form. */
export async function openPinnedKeys({ config, log }: Host): Promise<TrustedKeys> {
  const { dataDir, audience } = config
  const file = newKeysPath(dataDir)
  const installationKeys = await importPinned(pinnedKeysPath(dataDir))
  return openTrustedKeys({ audience, installationKeys, newKeys: { file, statements: await readNewKeys(file) } }, log)
}

interface Following {
  store: Store
  ungranted: UngrantedCounter
}

/** The signing keys that a scheduler or console believes, until the session ends. Throws as `openPinnedKeys` does. */
export async function followSigningKeys(
  { config, log, lifetime }: Host & { lifetime: Lifetime },
  { store, ungranted }: Following,
): Promise<SigningKeys> {
  const following = await openSigningKeys({
    trusted: await openPinnedKeys({ config, log }),
    find: () => signingKeys.findPublic(store),
    ungranted,
    clock: systemClock,
    log,
  })
  lifetime.onClose('signing keys', following.stop)
  return following
}

async function importPinned(path: string): Promise<InstallationKeys> {
  const pinned = await readPinned(path)
  try {
    return new Map(pinned.map(importInstallationKey))
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    throw new ConfigError(`${path} has a key that is none (${error.message}); ${COPY_ANEW}`)
  }
}

async function readPinned(path: string): Promise<Jwk[]> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    const what = error.code === 'ENOENT' ? 'does not exist' : `can't be read (${error.code})`
    throw new ConfigError(`${path} ${what}; ${COPY_ANEW}`)
  })
  const parsed = PinnedKeys.safeParse(parseJson(text))
  if (!parsed.success) throw new ConfigError(`${path} is no list of signing keys; ${COPY_ANEW}`)
  return parsed.data.keys
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
