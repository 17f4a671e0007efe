// Proves that one key-encryption key (KEK) opens everything: opens every data key with it alone, and with these every
// private half. It drops what it opens at once.
import * as captureKeys from '../../../src/store/access/capture-keys.ts'
import * as dataKeys from '../../../src/store/access/data-keys.ts'
import * as signingKeys from '../../../src/store/access/signing-keys.ts'
import type { Store } from '../../../src/store/pool.ts'
import { type KeyProvider, keksOf } from '../../../src/vault/kek/provider.ts'
import {
  captureHalfName,
  openPrivateHalves,
  type StoredPrivateHalf,
  signingHalfName,
} from '../../../src/vault/private-half.ts'
import { openKeyRing } from '../../../src/vault/ring/key-ring.ts'

const PAGE = 500

/** Opens all keys and counts them. Throws `Fault('key_unavailable')` if one doesn't open. */
export async function openAlone(store: Store, kek: KeyProvider): Promise<{ dataKeys: number; privateHalves: number }> {
  const stored = await dataKeys.findAll(store)
  const halves = openPrivateHalves(await openKeyRing(keksOf(kek), stored))
  const open = async (half: StoredPrivateHalf, name: string) => {
    const raw = await halves.open(half, name)
    raw.fill(0)
  }
  const signing = await signingKeys.listHalves(store)
  for (const { kid, ...half } of signing) await open(half, signingHalfName(kid))
  let privateHalves = signing.length
  for (let after: string | null | undefined = null; after !== undefined; ) {
    const page: Awaited<ReturnType<typeof captureKeys.listHalves>> = await captureKeys.listHalves(store, {
      after,
      limit: PAGE,
    })
    for (const { keyId: _, alias, type, ...half } of page) await open(half, captureHalfName(type, alias))
    privateHalves += page.length
    after = page.length < PAGE ? undefined : page.at(-1)?.keyId
  }
  return { dataKeys: stored.filter(({ wrapped }) => wrapped !== null).length, privateHalves }
}
