// The file of a gateway's host with a key of the vault: its own key pair, to which the vault encrypts what a gateway may
// know. `schema upgrade` makes the file; a gateway opens it.
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { addRoleKey, shareKeys } from '../../src/acts/role-keys.ts'
import { type Config, ConfigError } from '../../src/config.ts'
import { assert, Fault } from '../../src/errors.ts'
import type { Logger } from '../../src/logger.ts'
import { Secret } from '../../src/secret.ts'
import type { Store } from '../../src/store/pool.ts'
import * as roleKeys from '../../src/store/role-keys/role-keys.ts'
import * as sharedKeys from '../../src/store/role-keys/shared-keys.ts'
import type { LiveRing } from '../../src/vault/ring/key-ring.ts'
import { openRoleRing, type RoleRing } from '../../src/vault/ring/role-ring.ts'
import { makeRoleKeyText, type RoleKeyFile, readRoleKey, SHARED_PURPOSES } from '../../src/vault/ring/shared-keys.ts'
import { writePrivate } from './key-files.ts'
import { unopenedTo } from './key-ring.ts'
import { machineActor } from './operator.ts'

/** The path of the file with the gateway's key pair. */
export const gatewayKeysPath = (dataDir: string) => join(dataDir, 'system', 'gateway-keys.jwk')

/**
 * Makes the gateway's key pair if it is missing. Returns the file if it was written. The caller holds the upgrade's lock. The
 * file is written before the row: the next run registers a file without a row.
 */
export async function ensureGatewayKeys(
  { store, ring }: { store: Store; ring: LiveRing },
  dataDir: string,
): Promise<string[]> {
  const path = gatewayKeysPath(dataDir)
  const found = existsSync(path) ? new Secret(await readFile(path, 'utf8')) : undefined
  const foundKey = found && (await readRoleKey(found))
  const state = foundKey && (await roleKeys.findState(store, foundKey.kid))
  const isKept = found && foundKey && state !== 'forgotten'
  const text = isKept ? found : makeRoleKeyText()
  if (!isKept) await writePrivate(path, text.reveal(), { replace: true })
  const file = await readRoleKey(text)
  assert(file, 'a file that was just made can be read')
  if (state !== 'known') {
    await ring.reserve('private-half')
    const by = { actor: machineActor(), reason: undefined, isAutomatic: true }
    await addRoleKey({ store, ring }, file, by)
  }
  if (state !== 'known' || (await sharedKeys.listMissing(store, SHARED_PURPOSES)).length > 0)
    await shareKeys(store, ring)
  return isKept ? [] : [path]
}

interface GatewayHost {
  config: Pick<Config, 'dataDir'>
  log: Logger
}

/** Opens the keys of a gateway. Throws `ConfigError` if its host has no file that opens a key in use. */
export async function openGatewayKeys({ config, log }: GatewayHost, store: Store): Promise<RoleRing> {
  const { dataDir } = config
  const roleKey = await readGatewayKeys(dataDir)
  const load = () => sharedKeys.findAll(store, SHARED_PURPOSES, roleKey.kid)
  const { onUnopened } = unopenedTo(log)
  const onLeftOut = (name: string) => onUnopened(name, new Fault('key_unavailable'))
  try {
    return await openRoleRing(load, roleKey, { onLeftOut, onUnopened })
  } catch (error) {
    if (!(error instanceof Fault) || error.code !== 'key_unavailable') throw error
    throw new ConfigError(`${gatewayKeysPath(dataDir)} opens not every key in use; ${COPY_ANEW}`)
  }
}

const COPY_ANEW =
  'run `tokenmill schema upgrade` on a host with the key-encryption key, and copy the files of its folder system that begin with gateway here'

async function readGatewayKeys(dataDir: string): Promise<RoleKeyFile> {
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
  return file
}
