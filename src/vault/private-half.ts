// Private halves of capture keys and of the installation's signing keys, as they are stored: sealed under the data key
// `private-half`.
import { Fault } from '../errors.ts'
import type { LiveRing } from './ring/key-ring.ts'

/** A stored private half. */
export interface StoredPrivateHalf {
  wrappedPrivate: Buffer
  /** The version of the data key `private-half`; null once the half is destroyed. */
  privateVersion: number | null
}

/** The name for which the private half of a capture key is sealed. */
export function captureHalfName(type: string, alias: string): string {
  return `capture-key/${type}/${alias}`
}

/** The name for which the private half of a signing key is sealed. */
export function signingHalfName(kid: string): string {
  return `signing-key/${kid}`
}

export interface PrivateHalves {
  /** Seals a private half for `name`, and erases `raw`. */
  seal(raw: Buffer, name: string): Promise<StoredPrivateHalf & { privateVersion: number }>
  /** Throws `Fault('key_unavailable')` if the key isn't here, if `name` is another one, or if the bytes were changed. */
  open(stored: StoredPrivateHalf, name: string): Promise<Buffer>
}

export function openPrivateHalves(
  ring: Pick<LiveRing, 'sealPrivateHalf' | 'openPrivateHalf' | 'reserve'>,
): PrivateHalves {
  return {
    seal: async (raw, name) => {
      await ring.reserve('private-half')
      const { sealed, keyVersion } = ring.sealPrivateHalf(raw, name)
      raw.fill(0)
      return { wrappedPrivate: sealed, privateVersion: keyVersion }
    },
    open: async ({ wrappedPrivate, privateVersion }, name) => {
      if (privateVersion === null) throw new Fault('key_unavailable')
      return ring.openPrivateHalf(wrappedPrivate, privateVersion, name)
    },
  }
}
