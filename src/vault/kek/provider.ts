// Key-encryption keys (KEKs) behind an interface. A KEK wraps data keys, never
// cards. Each wrapped key names the KEK that opens it, so that backups from before a rotation open with the former one.
import { Fault } from '../../errors.ts'

export interface KeyProvider {
  /** The key's id. It is public and reveals nothing about the key. */
  id: string
  /** Wraps `plain` for a `purpose`: the result unwraps for that purpose only. Throws `Fault('kek_away')` as `unwrap` does. */
  wrap(plain: Buffer, purpose: string): Promise<Buffer>
  /**
   * Throws `Fault('key_unavailable')` if the key or the purpose is another one, or if the bytes were changed;
   * `Fault('kek_away')` if the key can't be reached now.
   */
  unwrap(wrapped: Buffer, purpose: string): Promise<Buffer>
}

/** The key-encryption keys that this host has. */
export interface Keks {
  /** Wraps new keys. */
  current: KeyProvider
  /** The key of this id. Throws `Fault('key_unavailable')` if this host doesn't have it. */
  find(id: string): KeyProvider
}

/** `current` is one of `providers`. */
export function keksOf(current: KeyProvider, providers: readonly KeyProvider[] = [current]): Keks {
  const known = new Map(providers.map(provider => [provider.id, provider]))
  return { current, find: id => known.get(id) ?? notHere(id) }
}

/** Throws the fault for a key that this host doesn't have. */
export function notHere(id: string): never {
  throw new Fault('key_unavailable', new Error(`this host does not have ${id}`))
}
