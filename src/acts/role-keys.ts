// The keys of roles without the key-encryption key (the gateway): registers a host's key, encrypts to it the data keys that
// the role may know, and forgets it. It ignores rows that tokenmill didn't write.
import type { JsonWebKey } from 'node:crypto'
import { Fault } from '../errors.ts'
import { Secret } from '../secret.ts'
import type { Db, Store } from '../store/pool.ts'
import * as roleKeys from '../store/role-keys/role-keys.ts'
import * as sharedKeys from '../store/role-keys/shared-keys.ts'
import type { KeyRing } from '../vault/ring/key-ring.ts'
import {
  type RoleKey,
  type RoleKeyFile,
  readRolePublicKey,
  roleKeyName,
  SHARED_PURPOSES,
} from '../vault/ring/shared-keys.ts'
import { type ActResult, type By, perform } from './act.ts'

export const ADD_ROLE_KEY = 'role-key.add'
export const FORGET_ROLE_KEY = 'role-key.forget'

type Ring = Pick<KeyRing, 'sealPrivateHalf' | 'openPrivateHalf' | 'shareKey' | 'names'>

/** Makes the public half of a host's file known. */
export function addRoleKey(
  { store, ring }: { store: Store; ring: Ring },
  { kid, publicJwk, secret }: Pick<RoleKeyFile, 'kid' | 'publicJwk' | 'secret'>,
  by: By,
): Promise<ActResult<{ kid: string }, 'known'>> {
  return perform(store, { action: ADD_ROLE_KEY, subject: kid }, by, async db => {
    const { sealed, keyVersion } = ring.sealPrivateHalf(secret.reveal(), roleKeyName(kid))
    const row = { kid, role: 'gateway' as const, publicJwk: { ...publicJwk }, sealed, keyVersion }
    if (!(await roleKeys.insert(db, row))) return { refused: 'known' as const }
    return { done: { kid }, detail: { role: 'gateway' } }
  })
}

/** Removes the data keys that were encrypted to a role's key. A holder of that key keeps what it has read before. */
export function forgetRoleKey(store: Store, kid: string, by: By): Promise<ActResult<{ kid: string }, 'unknown'>> {
  return perform(store, { action: FORGET_ROLE_KEY, subject: kid }, by, async db => {
    if (!(await roleKeys.forget(db, kid))) return { refused: 'unknown' as const }
    await sharedKeys.removeOf(db, kid)
    return { done: { kid }, detail: {} }
  })
}

export interface Shared {
  /** How many versions were encrypted. */
  added: number
  /** Keys of roles that tokenmill didn't write. */
  foreign: string[]
}

/** Encrypts to every key of a role the data keys that aren't encrypted to it yet. A further call does nothing. */
export async function shareKeys(db: Db, ring: Ring): Promise<Shared> {
  const missing = await sharedKeys.listMissing(db, SHARED_PURPOSES)
  if (missing.length === 0) return { added: 0, foreign: [] }
  const foreign: string[] = []
  const known = new Map<string, RoleKey>()
  for (const row of await roleKeys.list(db)) {
    const key = await openRow(ring, row)
    if (key) known.set(row.kid, key)
    else foreign.push(row.kid)
  }
  const held = new Set(ring.names())
  let added = 0
  for (const one of missing) {
    const to = known.get(one.kid)
    const purpose = SHARED_PURPOSES.find(name => name === one.purpose)
    if (!to || !purpose || !held.has(`${purpose}/${one.version}`)) continue
    await sharedKeys.insert(db, one, await ring.shareKey({ purpose, version: one.version }, to))
    added += 1
  }
  return { added, foreign }
}

/** Undefined if the row's secret isn't sealed for this very key, so that somebody else may hold its private half. */
async function openRow(
  ring: Ring,
  { kid, publicJwk, sealed, keyVersion }: roleKeys.RoleKeyRow,
): Promise<RoleKey | undefined> {
  const publicKey = await readRolePublicKey(publicJwk as JsonWebKey, kid)
  if (!publicKey) return undefined
  try {
    return { kid, publicKey, secret: new Secret(ring.openPrivateHalf(sealed, keyVersion, roleKeyName(kid))) }
  } catch (error) {
    // The version may be newer than the ring: then the caller reads the ring's keys again.
    if (error instanceof Fault && ring.names().includes(`private-half/${keyVersion}`)) return undefined
    throw error
  }
}
