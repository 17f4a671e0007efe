// Wraps a data key that one key-encryption key has wrapped by another one. The data key itself stays the same.
import { Fault } from '../../errors.ts'
import type { Keks, KeyProvider } from '../kek/provider.ts'
import { type WrappedKey, wrapPurpose } from './key-ring.ts'

/**
 * Throws `Fault('key_unavailable')` if this host can't unwrap the key, or if `to` can't unwrap what it has just
 * wrapped.
 */
export async function rewrap(
  keks: Pick<Keks, 'find'>,
  { purpose, version, kekId, wrapped }: Pick<WrappedKey, 'purpose' | 'version' | 'kekId'> & { wrapped: Buffer },
  to: KeyProvider,
): Promise<Buffer> {
  const name = wrapPurpose(purpose, version)
  const raw = await keks.find(kekId).unwrap(wrapped, name)
  try {
    const anew = await to.wrap(raw, name)
    // The former bytes are gone afterwards: with a token that wraps and doesn't unwrap every card would be lost.
    const again = await to.unwrap(anew, name)
    const isSame = again.equals(raw)
    again.fill(0)
    if (!isSame) throw new Fault('key_unavailable', new Error(`${to.id} does not open what it wrapped`))
    return anew
  } finally {
    raw.fill(0)
  }
}
