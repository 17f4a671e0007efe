// Replaces a data key for tests of rows under the former one: at once, without waiting for processes that hold the
// ring. A vault that is opened later seals under the new version.
import { openRingNow } from '../../../cli/open/key-ring.ts'
import type { OpenedVault } from '../../../cli/open/open.ts'
import { openPrivateHalves, type PrivateHalves } from '../../../src/vault/private-half.ts'
import type { LiveRing, Purpose } from '../../../src/vault/ring/key-ring.ts'
import { putIntoUse } from '../../vault/write-lives.ts'

export interface TurnedVault {
  ring: LiveRing
  halves: PrivateHalves
  version: number
}

export async function turnKey(
  vault: Pick<OpenedVault, 'store' | 'keks' | 'installationId' | 'lives'>,
  purpose: Purpose,
): Promise<TurnedVault> {
  const version = await putIntoUse(vault, purpose)
  const ring = await openRingNow(vault.keks, vault.store, vault.lives)
  return { ring, halves: openPrivateHalves(ring), version }
}
