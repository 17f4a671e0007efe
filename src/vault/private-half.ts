// Private halves of capture keys and of the installation's signing keys, as they are stored: sealed under the data key
// `private-half`. Releases before 0.4 wrapped them by the key-encryption key (KEK) itself; this file opens such halves, too.
import { Fault } from '../errors.ts'
import type { Keks } from './kek/provider.ts'
import type { LiveRing } from './key-ring.ts'

/** A stored private half and the key that opens it: exactly one of `kekId` and `privateVersion` is set. */
export interface StoredPrivateHalf {
  wrappedPrivate: Buffer
  kekId: string | null
  /** The version of the data key `private-half`. */
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
  seal(raw: Buffer, name: string): Promise<StoredPrivateHalf>
  /** Throws `Fault('key_unavailable')` if the key isn't here, if `name` is another one, or if the bytes were changed. */
  open(stored: StoredPrivateHalf, name: string): Promise<Buffer>
}

export function openPrivateHalves(
  ring: Pick<LiveRing, 'sealPrivateHalf' | 'openPrivateHalf' | 'reserve'>,
  keks: Pick<Keks, 'find'>,
): PrivateHalves {
  return {
    seal: async (raw, name) => {
      await ring.reserve('private-half')
      const { sealed, keyVersion } = ring.sealPrivateHalf(raw, name)
      raw.fill(0)
      return { wrappedPrivate: sealed, kekId: null, privateVersion: keyVersion }
    },
    open: async ({ wrappedPrivate, kekId, privateVersion }, name) => {
      if (privateVersion !== null) return ring.openPrivateHalf(wrappedPrivate, privateVersion, name)
      if (kekId === null) throw new Fault('key_unavailable')
      return keks.find(kekId).unwrap(wrappedPrivate, name)
    },
  }
}
