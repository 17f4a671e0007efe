// Replaces a data key for tests of rows under the former one: at once, without waiting for processes that hold the
// ring. A vault that is opened later seals under the new version.
import type { OpenedVault } from '../../../cli/open/open.ts'
import * as dataKeys from '../../../src/store/access/data-keys.ts'
import { openPrivateHalves, type PrivateHalves } from '../../../src/vault/private-half.ts'
import { type LiveRing, makeDataKeys, openKeyRing, type Purpose } from '../../../src/vault/ring/key-ring.ts'

export interface TurnedVault {
  ring: LiveRing
  halves: PrivateHalves
  version: number
}

export async function turnKey(
  { store, keks }: Pick<OpenedVault, 'store' | 'keks'>,
  purpose: Purpose,
): Promise<TurnedVault> {
  const former = await dataKeys.findActiveVersion(store, purpose)
  const version = (former ?? 0) + 1
  const [key] = await makeDataKeys(keks.current, [purpose], version)
  if (!key) throw new Error('no key was made')
  if (former !== undefined) await dataKeys.retire(store, purpose, former)
  await dataKeys.insert(store, key)
  const ring = await openKeyRing(keks, await dataKeys.findAll(store))
  return { ring, halves: openPrivateHalves(ring), version }
}
