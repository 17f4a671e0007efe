// The data keys of a role without the key-encryption key, read again while the process works. A version is encrypted to the
// role's key file.
import type { KeyObject } from 'node:crypto'
import { Fault } from '../../errors.ts'
import type { Secret } from '../../secret.ts'
import { type NumberPlace, openNetworkToken } from '../network-token.ts'
import { hashApiKey } from './api-key.ts'
import { type CurrentKey, type Hashed, holdKeys, type KeyRow } from './held-keys.ts'
import { openSharedKey, type RoleKeyFile, SHARED_PURPOSES } from './shared-keys.ts'

/** A stored version of a shared data key. */
export interface SharedRow extends KeyRow {
  /** The data key, encrypted to the key in this role's file; null if it isn't encrypted to that key yet. */
  jwe: string | null
}

export interface RoleRing {
  /** The keys that it holds, as `purpose/version`. */
  names(): string[]
  isTurning(): boolean
  refresh(): Promise<void>
  apiKeyHash(userId: string, apiKey: Secret): Hashed
  /** Throws `Fault('key_unavailable')` if the ring doesn't have this version, as the next two functions do. */
  apiKeyHashBy(userId: string, apiKey: Secret, keyVersion: number): Buffer
  openNetworkToken(sealed: Buffer, keyVersion: number, place: NumberPlace): Secret
  /** The key of the bodies of batches that is in use. */
  intakeKey(): CurrentKey
  /** Every version of it. */
  intakeKeys(): CurrentKey[]
}

interface RoleRingOptions {
  /** Called with a former version that this host can't open, once. */
  onLeftOut(name: string): void
  /** Called with a version that isn't in use yet and that this host can't open, and why. */
  onUnopened?(name: string, error: unknown): void
}

/** Throws `Fault('key_unavailable')` if a version in use can't be opened. */
export async function openRoleRing(
  load: () => Promise<SharedRow[]>,
  roleKey: RoleKeyFile,
  { onLeftOut, ...options }: RoleRingOptions,
): Promise<RoleRing> {
  const told = new Set<string>()
  const isOpenable = (row: SharedRow) => {
    if (row.state !== 'DECRYPT_ONLY' || row.jwe !== null) return true
    const name = `${row.purpose}/${row.version}`
    if (!told.has(name)) onLeftOut(name)
    told.add(name)
    return false
  }
  const source = {
    load: async () => (await load()).filter(isOpenable),
    open: (row: SharedRow) => open(row, roleKey),
    isFollowed: true,
  }
  const held = await holdKeys(source, SHARED_PURPOSES, options)
  const { names, isTurning, refresh } = held
  return {
    names,
    isTurning,
    refresh,
    apiKeyHash: (userId, apiKey) => {
      const { key, version } = held.current('api-key')
      return { hash: hashApiKey(key, userId, apiKey), keyVersion: version }
    },
    apiKeyHashBy: (userId, apiKey, keyVersion) => hashApiKey(held.find('api-key', keyVersion), userId, apiKey),
    openNetworkToken: (sealed, keyVersion, place) =>
      openNetworkToken(held.find('network-token', keyVersion), sealed, place),
    intakeKey: () => held.forHash('intake'),
    intakeKeys: () => held.versions('intake').map(version => ({ key: held.find('intake', version), version })),
  }
}

async function open(row: SharedRow, roleKey: RoleKeyFile): Promise<KeyObject> {
  const purpose = SHARED_PURPOSES.find(known => known === row.purpose)
  if (!purpose || row.jwe === null) throw new Fault('key_unavailable')
  return openSharedKey(row.jwe, { purpose, version: row.version }, roleKey)
}
