// The MAC over a hash of the audit: only the vault's key `audit` makes it.
import { Fault } from '../errors.ts'
import type { KeyRing } from '../vault/ring/key-ring.ts'

export type Macs = Pick<KeyRing, 'auditMacBy'>

/** False also if the vault has no key of that version: nobody else could check it. */
export function isMac(
  ring: Macs,
  { hash, mac, keyVersion }: { hash: Buffer; mac: Buffer; keyVersion: number },
): boolean {
  try {
    return ring.auditMacBy(hash, keyVersion).equals(mac)
  } catch (error) {
    if (error instanceof Fault && error.code === 'key_unavailable') return false
    throw error
  }
}
