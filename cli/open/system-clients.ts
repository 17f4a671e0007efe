// The keys of the system clients: gateway, scheduler, worker. Each signs with its own key, whose file is in the data
// directory of the machine that runs the role. On a machine without the file a new key is made. The gateway's other
// secrets are beside these files.

import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { publicPart, readSigningKey } from '../../producers/client-file.ts'
import { SYSTEM_CLIENTS, type SystemClient } from '../../src/job/catalogue.ts'
import type { SigningKey } from '../../src/job/envelope/envelope.ts'
import * as audits from '../../src/store/access/audits.ts'
import * as clients from '../../src/store/access/clients.ts'
import * as dataKeys from '../../src/store/access/data-keys.ts'
import type { Db, Store } from '../../src/store/pool.ts'
import { apiKeyFileText, readApiKeyFile } from '../../src/vault/api-key.ts'
import { importPublicJwk, Jwk, makeSigningKey } from '../../src/vault/client-key.ts'
import type { KeyProvider } from '../../src/vault/kek.ts'
import { openKey } from '../../src/vault/key-ring.ts'
import { networkTokenFileText, readNetworkTokenFile } from '../../src/vault/network-token.ts'
import { actor } from '../terminal.ts'
import { jsonText, writePrivate } from './key-files.ts'

const NAMES = Object.keys(SYSTEM_CLIENTS) as SystemClient[]
/** How long an older key still verifies queued jobs: no envelope lives longer. */
const RETIRE_MS = 7 * 86_400_000

function systemKeyPath(dataDir: string, name: SystemClient): string {
  return join(dataDir, 'system', `${name}.jwk`)
}

/** The signing key of a role. Throws `ConfigError` if its file is missing. */
export function readSystemKey(dataDir: string, name: SystemClient): Promise<SigningKey> {
  return readSigningKey(systemKeyPath(dataDir, name), name)
}

/** The path of the file with the key for hashing API keys. A gateway needs no other key of the vault for that. */
export function apiKeyPath(dataDir: string): string {
  return join(dataDir, 'system', 'api-key.jwk')
}

/**
 * Writes that key's file if it is missing or differs. Returns the files that were written. The caller holds the
 * upgrade's lock.
 */
export async function ensureApiKeyFile(store: Store, kek: KeyProvider, dataDir: string): Promise<string[]> {
  const path = apiKeyPath(dataDir)
  const key = await openKey(kek, await dataKeys.findAll(store), 'api-key')
  const known = existsSync(path) ? await readApiKeyFile(path).catch(() => undefined) : undefined
  if (known?.equals(key)) return []
  await writePrivate(path, apiKeyFileText(key).reveal(), { replace: true })
  return [path]
}

/** The path of the file with the key that seals the numbers of scheme tokens. A gateway needs it to show them. */
export function networkTokenPath(dataDir: string): string {
  return join(dataDir, 'system', 'network-token.jwk')
}

/** As `ensureApiKeyFile`, for the key of scheme tokens. */
export async function ensureNetworkTokenFile(store: Store, kek: KeyProvider, dataDir: string): Promise<string[]> {
  const path = networkTokenPath(dataDir)
  const keys = await dataKeys.findAll(store)
  const key = await openKey(kek, keys, 'network-token')
  const version = keys.find(one => one.purpose === 'network-token' && one.state === 'ACTIVE')?.version ?? 1
  const known = existsSync(path) ? await readNetworkTokenFile(path).catch(() => undefined) : undefined
  if (known?.key.equals(key) && known.version === version) return []
  await writePrivate(path, networkTokenFileText({ key, version }).reveal(), { replace: true })
  return [path]
}

/** Makes missing clients, keys and files. Returns the files that were written. The caller holds the upgrade's lock. */
export async function ensureSystemClients(store: Store, dataDir: string): Promise<string[]> {
  const made: string[] = []
  for (const name of NAMES) {
    const path = systemKeyPath(dataDir, name)
    const state = await stateOf(store, name, path)
    if (state === 'ACTIVE') continue
    if (state === 'UNREGISTERED') {
      const jwk = Jwk.parse(JSON.parse(await readFile(path, 'utf8')))
      await store.transaction(db => register(db, name, publicPart(jwk)))
      continue
    }
    const pair = makeSigningKey()
    // The file is written before the row: the next run inserts a missing row, but a row without its file would be
    // useless.
    await writePrivate(path, jsonText(pair.privateJwk.reveal()), { replace: true })
    made.push(path)
    await store.transaction(db => register(db, name, pair.publicJwk))
  }
  return made
}

/** The state of the file's key in the store. */
async function stateOf(
  db: Db,
  name: SystemClient,
  path: string,
): Promise<clients.ClientKey['state'] | 'ABSENT' | 'UNREGISTERED'> {
  if (!existsSync(path)) return 'ABSENT'
  const { kid } = await readSigningKey(path, name)
  const key = (await clients.findClientKeys(db, name)).find(known => known.kid === kid)
  return key?.state ?? 'UNREGISTERED'
}

async function register(db: Db, name: SystemClient, publicJwk: Jwk): Promise<void> {
  const { kid, alg } = importPublicJwk(publicJwk)
  const client = { clientId: name, name, userId: randomUUID(), entities: [], roles: [], alg, system: true }
  await clients.insert(db, { ...client, apiKeyHash: null })
  await clients.hold(db, name)
  const active = (await clients.findClientKeys(db, name)).filter(key => key.state === 'ACTIVE')
  for (const old of active.slice(0, Math.max(0, active.length + 1 - clients.ACTIVE_KEYS_MAX)))
    await clients.retireKey(db, name, old.kid, Date.now() + RETIRE_MS)
  await clients.insertKey(db, { clientId: name, kid, alg, publicJwk })
  await audits.insert(db, { actor: actor(), action: 'client.key.add', subject: name, detail: { kid } })
}
