// What a command needs to state capture keys: the codes of rows, the key that signs results, the installation's name.
import type { Stating } from '../../src/acts/capture-keys.ts'
import { openInstallationKey } from './installation-key.ts'
import type { OpenedVault, Session } from './open.ts'

/** Throws `Fault('key_unavailable')` if the signing key can't be opened. */
export async function openStating(
  { config }: { config: Pick<Session['config'], 'audience'> },
  { store, halves, ring }: Pick<OpenedVault, 'store' | 'halves'> & Pick<Stating, 'ring'>,
): Promise<Stating> {
  return { ring, signing: await openInstallationKey(store, halves), audience: config.audience }
}
