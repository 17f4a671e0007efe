// The keys of the system clients: gateway, scheduler, worker. Each signs with its own key, whose file is in the data
// directory of the machine that runs the role. On a machine without the file a new key is made. The gateway's other
// secrets are beside these files (gateway/gateway-keys.ts).

import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { publicPart, readSigningKey } from '../../producers/client/client-file.ts'
import { grantClient, grantClientKey, isClientKeyGranted, NEW_KEY } from '../../src/acts/grants.ts'
import type { SigningKey } from '../../src/job/envelope/envelope.ts'
import { SYSTEM_CLIENTS, type SystemClient } from '../../src/job/system-clients.ts'
import * as audits from '../../src/store/access/audits.ts'
import * as clients from '../../src/store/access/clients.ts'
import type { Db, Store } from '../../src/store/pool.ts'
import { importPublicJwk, Jwk, makeSigningKey } from '../../src/vault/client-key.ts'
import type { Keks } from '../../src/vault/kek/provider.ts'
import type { KeyRing } from '../../src/vault/ring/key-ring.ts'
import type { KnownLives } from '../../src/vault/ring/known-lives.ts'
import { actor } from '../terminal.ts'
import { jsonText, writePrivate } from './key-files.ts'
import { openRingNow } from './key-ring.ts'

const NAMES = SYSTEM_CLIENTS
/** How long an older key still verifies queued jobs: no envelope lives longer. */
const RETIRE_MS = 7 * 86_400_000

export function systemKeyPath(dataDir: string, name: SystemClient): string {
  return join(dataDir, 'system', `${name}.jwk`)
}

/** The signing key of a role. Throws `ConfigError` if its file is missing. */
export function readSystemKey(dataDir: string, name: SystemClient): Promise<SigningKey> {
  return readSigningKey(systemKeyPath(dataDir, name), name)
}

/** As `readSystemKey`; undefined on a host without the file. */
export async function findSystemKey(dataDir: string, name: SystemClient): Promise<SigningKey | undefined> {
  return existsSync(systemKeyPath(dataDir, name)) ? readSystemKey(dataDir, name) : undefined
}

/** Makes missing clients, keys and files. Returns the files that were written. The caller holds the upgrade's lock. */
export async function ensureSystemClients(
  { store, keks, lives }: { store: Store; keks: Keks; lives: KnownLives },
  dataDir: string,
): Promise<string[]> {
  const made: string[] = []
  const openRing = async () => openRingNow(keks, store, lives)
  for (const name of NAMES) {
    const path = systemKeyPath(dataDir, name)
    const state = await stateOf(store, name, path)
    if (state === 'ACTIVE') continue
    if (state === 'UNREGISTERED') {
      const jwk = Jwk.parse(JSON.parse(await readFile(path, 'utf8')))
      await store.transaction(async db => register(db, await openRing(), name, publicPart(jwk)))
      continue
    }
    const pair = makeSigningKey()
    // The file is written before the row: the next run inserts a missing row, but a row without its file would be
    // useless.
    await writePrivate(path, jsonText(pair.privateJwk.reveal()), { replace: true })
    made.push(path)
    await store.transaction(async db => register(db, await openRing(), name, pair.publicJwk))
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

async function register(db: Db, ring: KeyRing, name: SystemClient, publicJwk: Jwk): Promise<void> {
  const { kid, alg } = importPublicJwk(publicJwk)
  const client = { clientId: name, name, userId: randomUUID(), entities: [], roles: [], alg, system: true }
  if (await clients.insert(db, { ...client, apiKeyHash: null }))
    await grantClient(db, ring, { ...client, names: 'checked' })
  await clients.hold(db, name)
  const active = (await clients.findClientKeys(db, name)).filter(key => key.state === 'ACTIVE')
  for (const old of active.slice(0, Math.max(0, active.length + 1 - clients.ACTIVE_KEYS_MAX)))
    await retire(db, ring, old)
  const key = { clientId: name, kid, alg, publicJwk }
  await clients.insertKey(db, key)
  await grantClientKey(db, ring, { ...key, ...NEW_KEY })
  const added = { actor: actor(), action: 'client.key.add', subject: name, detail: { kid } }
  await audits.insert(db, { ...added, isAutomatic: true })
}

/** Lets the key verify for the life of an envelope. A key that tokenmill didn't write gets no code by that. Returns until when (ms). */
export async function retire(db: Db, ring: KeyRing, old: clients.ClientKey): Promise<number> {
  const { clientId, kid } = old
  const validUntil = Date.now() + RETIRE_MS
  await clients.retireKey(db, clientId, kid, validUntil)
  if (isClientKeyGranted(ring, old)) await grantClientKey(db, ring, { ...old, state: 'RETIRED', validUntil })
  return validUntil
}
