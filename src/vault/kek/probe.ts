// Probes: bytes that a key-encryption key has wrapped, and that the store shows to every host. A host that unwraps them
// has that key.
import { createHash } from 'node:crypto'
import { Fault } from '../../errors.ts'
import type { KeyProvider } from './provider.ts'

const PURPOSE = 'kek-probe'

export function makeProbe(kek: KeyProvider): Promise<Buffer> {
  return kek.wrap(plainOf(kek.id), PURPOSE)
}

/** Throws `Fault('key_unavailable')` if `kek` isn't the key that made the probe. */
export async function prove(kek: KeyProvider, probe: Buffer): Promise<void> {
  const plain = await kek.unwrap(probe, PURPOSE)
  if (!plain.equals(plainOf(kek.id))) throw new Fault('key_unavailable')
}

/** As long as a data key, because a token may wrap nothing else. It is no secret. */
function plainOf(kekId: string): Buffer {
  return createHash('sha256').update(`tokenmill kek probe ${kekId}`).digest()
}
