// The file of a gateway's host with a key of the vault: its own key pair, to which the vault encrypts what a gateway may
// know. `schema upgrade` makes the file; a gateway opens it.
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { addRoleKey, shareKeys } from '../../src/acts/role-keys.ts'
import { type Config, ConfigError } from '../../src/config.ts'
import { assert, Fault } from '../../src/errors.ts'
import type { Logger } from '../../src/log.ts'
import { Secret } from '../../src/secret.ts'
import type { Store } from '../../src/store/pool.ts'
import * as roleKeys from '../../src/store/role-keys/role-keys.ts'
import * as sharedKeys from '../../src/store/role-keys/shared-keys.ts'
import type { Keks } from '../../src/vault/kek/provider.ts'
import { openLiveRing } from '../../src/vault/ring/key-ring.ts'
import type { KnownLives } from '../../src/vault/ring/known-lives.ts'
import { openRoleRing, type RoleRing } from '../../src/vault/ring/role-ring.ts'
import { makeRoleKeyText, type RoleKeyFile, readRoleKey, SHARED_PURPOSES } from '../../src/vault/ring/shared-keys.ts'
import { writePrivate } from './key-files.ts'
import { ringSource, unopenedTo } from './key-ring.ts'
import { machineActor } from './operator.ts'

const inSystem = (dataDir: string, file: string) => join(dataDir, 'system', file)

/** The path of the file with the gateway's key pair. */
export const gatewayKeysPath = (dataDir: string) => inSystem(dataDir, 'gateway-keys.jwk')

/**
 * Makes the gateway's key pair if it is missing. Returns the files that were written. The caller holds the upgrade's lock. The file is
 * written before the row: the next run registers a file without a row.
 */
export async function ensureGatewayKeys(
  { store, keks, lives }: { store: Store; keks: Keks; lives: KnownLives },
  dataDir: string,
): Promise<string[]> {
  const path = gatewayKeysPath(dataDir)
  const found = existsSync(path) ? await readRoleKey(new Secret(await readFile(path, 'utf8'))) : undefined
  const state = found && (await roleKeys.findState(store, found.kid))
  const made: string[] = []
  let file = found
  if (!file || state === 'forgotten') {
    const text = makeRoleKeyText()
    file = await readRoleKey(text)
    await writePrivate(path, text.reveal(), { replace: true })
    made.push(path)
  }
  assert(file, 'a file that was just made can be read')
  const isNew = state !== 'known'
  if (!isNew && (await sharedKeys.listMissing(store, SHARED_PURPOSES)).length === 0) return made
  const ring = await openLiveRing(keks, ringSource(store, lives))
  if (isNew) {
    await ring.reserve('private-half')
    const by = { actor: machineActor(), reason: undefined, isAutomatic: true }
    await addRoleKey({ store, ring }, file, by)
  }
  await shareKeys(store, ring)
  return made
}

interface GatewayHost {
  config: Pick<Config, 'dataDir'>
  log: Logger
}

/** Opens the keys of a gateway. Throws `ConfigError` if its host has no file that opens a key in use. */
export async function openGatewayRing({ config, log }: GatewayHost, store: Store): Promise<RoleRing> {
  const { dataDir } = config
  const roleKey = await readGatewayKeys(dataDir)
  const load = () => sharedKeys.findAll(store, SHARED_PURPOSES, roleKey.kid)
  const { onUnopened } = unopenedTo(log)
  const onLeftOut = (name: string) => onUnopened(name, new Fault('key_unavailable'))
  try {
    return await openRoleRing(load, roleKey, { onLeftOut, onUnopened })
  } catch (error) {
    if (!(error instanceof Fault) || error.code !== 'key_unavailable') throw error
    throw new ConfigError(
      `${gatewayKeysPath(dataDir)} opens not every key in use; run \`tokenmill schema upgrade\` on a host with the key-encryption key, and copy the files of its folder system that begin with gateway here`,
    )
  }
}

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
