// The files of a gateway's host with keys of the vault: its own key pair, to which the vault encrypts what a gateway may
// know, and two of those keys as earlier releases have them. `schema upgrade` makes the files; a gateway opens them.
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { addRoleKey, shareKeys } from '../../../src/acts/key/role-keys.ts'
import { type Config, ConfigError } from '../../../src/config.ts'
import { assert, Fault } from '../../../src/errors.ts'
import type { Logger } from '../../../src/log.ts'
import { Secret } from '../../../src/secret.ts'
import * as dataKeys from '../../../src/store/access/data-keys.ts'
import type { Store } from '../../../src/store/pool.ts'
import * as roleKeys from '../../../src/store/role-keys/role-keys.ts'
import * as sharedKeys from '../../../src/store/role-keys/shared-keys.ts'
import { apiKeyFileText, readApiKeyFile } from '../../../src/vault/api-key.ts'
import type { Keks } from '../../../src/vault/kek/provider.ts'
import { openKey, openLiveRing, type Purpose } from '../../../src/vault/key-ring.ts'
import { networkTokenFileText, readNetworkTokenFile } from '../../../src/vault/network-token.ts'
import { openRoleRing, type RoleRing } from '../../../src/vault/ring/role-ring.ts'
import { makeRoleKeyText, type RoleKeyFile, readRoleKey, SHARED_PURPOSES } from '../../../src/vault/ring/shared-keys.ts'
import { writePrivate } from '../key-files.ts'
import { ringSource, unopenedTo } from '../key-ring.ts'
import { machineActor } from '../operator.ts'

const inSystem = (dataDir: string, file: string) => join(dataDir, 'system', file)

/** The path of the file with the gateway's key pair. */
export const gatewayKeysPath = (dataDir: string) => inSystem(dataDir, 'gateway-keys.jwk')

/** The path of the file with the key for hashing API keys. */
export const apiKeyPath = (dataDir: string) => inSystem(dataDir, 'api-key.jwk')

/** The path of the file with the key that seals the numbers of scheme tokens. */
export const networkTokenPath = (dataDir: string) => inSystem(dataDir, 'network-token.jwk')

/** Makes what is missing or differs. Returns the files that were written. The caller holds the upgrade's lock. */
export async function ensureGatewayFiles(store: Store, keks: Keks, dataDir: string): Promise<string[]> {
  return [
    ...(await ensureGatewayKeys(store, keks, dataDir)),
    ...(await ensureApiKeyFile(store, keks, dataDir)),
    ...(await ensureNetworkTokenFile(store, keks, dataDir)),
  ]
}

/** The file is written before the row: the next run registers a file without a row. */
async function ensureGatewayKeys(store: Store, keks: Keks, dataDir: string): Promise<string[]> {
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
  const ring = await openLiveRing(keks, ringSource(store))
  if (isNew) {
    await ring.reserve('private-half')
    const by = { actor: machineActor(), reason: undefined, isAutomatic: true }
    await addRoleKey({ store, ring }, file, by)
  }
  await shareKeys(store, ring)
  return made
}

async function ensureApiKeyFile(store: Store, keks: Keks, dataDir: string): Promise<string[]> {
  const path = apiKeyPath(dataDir)
  const { key, version } = await openActive(store, keks, 'api-key')
  const known = existsSync(path) ? await readApiKeyFile(path).catch(() => undefined) : undefined
  if (known?.key.equals(key) && known.version === version) return []
  await writePrivate(path, apiKeyFileText({ key, version }).reveal(), { replace: true })
  return [path]
}

async function ensureNetworkTokenFile(store: Store, keks: Keks, dataDir: string): Promise<string[]> {
  const path = networkTokenPath(dataDir)
  const { key, version } = await openActive(store, keks, 'network-token')
  const known = existsSync(path) ? await readNetworkTokenFile(path).catch(() => undefined) : undefined
  if (known?.key.equals(key) && known.version === version) return []
  await writePrivate(path, networkTokenFileText({ key, version }).reveal(), { replace: true })
  return [path]
}

async function openActive(store: Store, keks: Keks, purpose: Purpose) {
  const keys = await dataKeys.findAll(store)
  const version = keys.find(one => one.purpose === purpose && one.state === 'ACTIVE')?.version ?? 1
  return { key: await openKey(keks, keys, purpose), version }
}

interface GatewayHost {
  config: Pick<Config, 'dataDir'>
  log: Logger
}

/** Opens the keys of a gateway. Throws `ConfigError` if its host has no file that opens a key in use. */
export async function openGatewayRing({ config, log }: GatewayHost, store: Store): Promise<RoleRing> {
  const { dataDir } = config
  const roleKey = await readGatewayKeys(dataDir)
  const files = {
    roleKey,
    apiKey: existsSync(apiKeyPath(dataDir)) ? await readApiKeyFile(apiKeyPath(dataDir)) : undefined,
    networkToken: existsSync(networkTokenPath(dataDir))
      ? await readNetworkTokenFile(networkTokenPath(dataDir))
      : undefined,
  }
  if (!roleKey) log.warn(`${gatewayKeysPath(dataDir)} is missing: ${WITHOUT}`)
  const load = () => sharedKeys.findAll(store, SHARED_PURPOSES, roleKey?.kid ?? null)
  const { onUnopened } = unopenedTo(log)
  const onLeftOut = (name: string) => onUnopened(name, new Fault('key_unavailable'))
  try {
    return await openRoleRing(load, files, { onLeftOut, onUnopened })
  } catch (error) {
    if (!(error instanceof Fault) || error.code !== 'key_unavailable') throw error
    throw new ConfigError(
      `${gatewayKeysPath(dataDir)} opens not every key in use; run \`tokenmill schema upgrade\` on a host with the key-encryption key, and copy the files of its folder system that begin with gateway here`,
    )
  }
}

const WITHOUT =
  'this gateway can follow no rotation of api-key, network-token and intake; `tokenmill schema upgrade` makes the file on a host with the key-encryption key'

async function readGatewayKeys(dataDir: string): Promise<RoleKeyFile | undefined> {
  const path = gatewayKeysPath(dataDir)
  if (!existsSync(path)) return undefined
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new ConfigError(`${path} can't be read (${error.code})`)
  })
  const file = await readRoleKey(new Secret(text))
  if (!file) throw new ConfigError(`${path} is not the key of a gateway; copy it from the host of \`schema upgrade\``)
  return file
}
