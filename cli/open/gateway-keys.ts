// The file of a gateway's host with a key of the vault: its own key pair, to which the vault encrypts what a gateway may
// know, and the signing keys of the installation that it believes. `schema upgrade` makes the file; a gateway opens it, and
// keeps the signing keys that it learns of in a file beside it.
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { importInstallationKey } from '../../producers/client/client-file.ts'
import { openTrustedKeys, readNewKeys, type TrustedKeys } from '../../producers/client/trusted-keys.ts'
import { addRoleKey, shareKeys } from '../../src/acts/role-keys.ts'
import { type Config, ConfigError } from '../../src/config.ts'
import { assert, Fault } from '../../src/errors.ts'
import type { InstallationKeys } from '../../src/job/envelope/installation-jws.ts'
import type { Logger } from '../../src/logger.ts'
import { Secret } from '../../src/secret.ts'
import type { PublicSigningKey } from '../../src/store/access/signing-keys.ts'
import type { Store } from '../../src/store/pool.ts'
import * as roleKeys from '../../src/store/role-keys/role-keys.ts'
import * as sharedKeys from '../../src/store/role-keys/shared-keys.ts'
import type { Jwk } from '../../src/vault/client-key.ts'
import type { Keks } from '../../src/vault/kek/provider.ts'
import { openLiveRing } from '../../src/vault/ring/key-ring.ts'
import type { KnownLives } from '../../src/vault/ring/known-lives.ts'
import { openRoleRing, type RoleRing } from '../../src/vault/ring/role-ring.ts'
import {
  makeRoleKeyText,
  type RoleKeyFile,
  readRoleKey,
  SHARED_PURPOSES,
  withInstallationKeys,
} from '../../src/vault/ring/shared-keys.ts'
import { CLIENT_KEYS_MAX, findOwnKeys } from './installation-key.ts'
import { writePrivate } from './key-files.ts'
import { ringSource, unopenedTo } from './key-ring.ts'
import { machineActor } from './operator.ts'

const inSystem = (dataDir: string, file: string) => join(dataDir, 'system', file)

/** The path of the file with the gateway's key pair. */
export const gatewayKeysPath = (dataDir: string) => inSystem(dataDir, 'gateway-keys.jwk')

/** The file of the signing keys that a gateway learned of, as statements; a gateway writes it. */
const newKeysPath = (dataDir: string) => inSystem(dataDir, 'gateway.new-keys.json')

/**
 * Makes the gateway's key pair if it is missing, and pins the installation's signing keys in its file. Returns the files that
 * were written. The caller holds the upgrade's lock. The file is written before the row: the next run registers a file
 * without a row.
 */
export async function ensureGatewayKeys(
  { store, keks, lives }: { store: Store; keks: Keks; lives: KnownLives },
  dataDir: string,
): Promise<string[]> {
  const path = gatewayKeysPath(dataDir)
  const ring = await openLiveRing(keks, ringSource(store, lives))
  const found = existsSync(path) ? new Secret(await readFile(path, 'utf8')) : undefined
  const foundKey = found && (await readRoleKey(found))
  const state = foundKey && (await roleKeys.findState(store, foundKey.kid))
  const isKept = found && foundKey && state !== 'forgotten'
  const text = isKept ? found : makeRoleKeyText()
  const pinned = keysToPin(await findOwnKeys(store, ring), isKept ? foundKey.installationKeys : undefined)
  const made: string[] = []
  if (!isKept || pinned.length !== foundKey.installationKeys?.length) {
    await writePrivate(path, withInstallationKeys(text, pinned).reveal(), { replace: true })
    made.push(path)
  }
  const file = await readRoleKey(text)
  assert(file, 'a file that was just made can be read')
  if (state !== 'known') {
    await ring.reserve('private-half')
    const by = { actor: machineActor(), reason: undefined, isAutomatic: true }
    await addRoleKey({ store, ring }, file, by)
  }
  if (state !== 'known' || (await sharedKeys.listMissing(store, SHARED_PURPOSES)).length > 0)
    await shareKeys(store, ring)
  return made
}

/**
 * The signing keys for the file: all if it has none yet, else those that it has and the live ones. A retired key that an
 * operator took out, because somebody else may have it, stays out.
 */
function keysToPin(own: readonly PublicSigningKey[], pinned: readonly Jwk[] | undefined): Jwk[] {
  if (pinned === undefined) return own.slice(0, CLIENT_KEYS_MAX).map(({ publicJwk }) => publicJwk)
  const known = new Set(pinned.map(jwk => jwk['kid']))
  const added = own.filter(({ kid, state }) => state !== 'RETIRED' && !known.has(kid))
  return [...added.map(({ publicJwk }) => publicJwk), ...pinned]
}

interface GatewayHost {
  config: Pick<Config, 'dataDir' | 'audience'>
  log: Logger
}

export interface GatewayKeys {
  ring: RoleRing
  /** The installation's signing keys that the gateway believes. */
  trusted: TrustedKeys
}

/** Opens the keys of a gateway. Throws `ConfigError` if its host has no file that opens a key in use. */
export async function openGatewayKeys({ config, log }: GatewayHost, store: Store): Promise<GatewayKeys> {
  const { dataDir, audience } = config
  const roleKey = await readGatewayKeys(dataDir)
  const file = newKeysPath(dataDir)
  const statements = await readNewKeys(file)
  const trusted = openTrustedKeys({ audience, installationKeys: roleKey.pinned, newKeys: { file, statements } }, log)
  const load = () => sharedKeys.findAll(store, SHARED_PURPOSES, roleKey.kid)
  const { onUnopened } = unopenedTo(log)
  const onLeftOut = (name: string) => onUnopened(name, new Fault('key_unavailable'))
  try {
    return { ring: await openRoleRing(load, roleKey, { onLeftOut, onUnopened }), trusted }
  } catch (error) {
    if (!(error instanceof Fault) || error.code !== 'key_unavailable') throw error
    throw new ConfigError(`${gatewayKeysPath(dataDir)} opens not every key in use; ${COPY_ANEW}`)
  }
}

const COPY_ANEW =
  'run `tokenmill schema upgrade` on a host with the key-encryption key, and copy the files of its folder system that begin with gateway here'

async function readGatewayKeys(dataDir: string): Promise<RoleKeyFile & { pinned: InstallationKeys }> {
  const path = gatewayKeysPath(dataDir)
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    const what =
      error.code === 'ENOENT'
        ? 'does not exist; `tokenmill schema upgrade` makes it on a host with the key-encryption key'
        : `can't be read (${error.code})`
    throw new ConfigError(`${path} ${what}`)
  })
  const file = await readRoleKey(new Secret(text))
  if (!file) throw new ConfigError(`${path} is not the key of a gateway; copy it from the host of \`schema upgrade\``)
  if (file.installationKeys === undefined) throw new ConfigError(`${path} has no installation_keys; ${COPY_ANEW}`)
  try {
    return { ...file, pinned: new Map(file.installationKeys.map(importInstallationKey)) }
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    throw new ConfigError(`${path}: installation_keys has a key that is none (${error.message}); ${COPY_ANEW}`)
  }
}
