// A key ring of the keys that open, for the drill on a restored backup: it names the keys that don't open, instead of
// refusing them all. Nothing may be sealed with it.
import { Fault } from '../../errors.ts'
import type { Keks, KeyProvider } from '../kek/provider.ts'
import {
  type LiveRing,
  makeDataKeys,
  openKeyRing,
  PURPOSES,
  type Purpose,
  unwrapKey,
  type WrappedKey,
} from './key-ring.ts'

export interface DrillRing {
  ring: LiveRing
  /** The keys that open. */
  opened: WrappedKey[]
  /** The keys that don't. */
  failed: WrappedKey[]
  /** The purposes of which no stored key is active. */
  missing: Purpose[]
}

/** A version that no key has. */
const STAND_IN = 32_767

/** A ring needs an active key for each purpose: this one wraps a substitute for each purpose without an active key that opens. */
const standIn: KeyProvider = {
  id: 'stand-in',
  wrap: async plain => Buffer.from(plain),
  unwrap: async wrapped => Buffer.from(wrapped),
}

/**
 * Opens each key separately, so that one that can't be opened keeps no other closed. Keys of purposes that this release
 * doesn't know are left out, as are destroyed ones.
 */
export async function openDrillRing(keks: Pick<Keks, 'find'>, keys: readonly WrappedKey[]): Promise<DrillRing> {
  const names: readonly string[] = PURPOSES
  const stored = keys.filter(key => key.state !== 'DESTROYED' && names.includes(key.purpose))
  const opened: WrappedKey[] = []
  const failed: WrappedKey[] = []
  for (const key of stored) ((await opens(keks, key)) ? opened : failed).push(key)
  const without = (some: readonly WrappedKey[]) =>
    PURPOSES.filter(purpose => !some.some(key => key.purpose === purpose && key.state === 'ACTIVE'))
  const find = (id: string) => (id === standIn.id ? standIn : keks.find(id))
  const ring = await openKeyRing({ find }, [...opened, ...(await makeDataKeys(standIn, without(opened), STAND_IN))])
  return { ring, opened, failed, missing: without(stored) }
}

async function opens(keks: Pick<Keks, 'find'>, key: WrappedKey): Promise<boolean> {
  try {
    await unwrapKey(keks, key)
    return true
  } catch (error) {
    if (error instanceof Fault) return false
    throw error
  }
}
