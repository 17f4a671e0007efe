// Writes lives of keys as an act does, without its conditions.

import type { LivesKeeper } from '../../src/acts/turn-lives.ts'
import * as dataKeys from '../../src/store/access/data-keys.ts'
import * as keyLives from '../../src/store/access/key-lives.ts'
import { activating, adding, type KeyLives, proveLives, withKeys } from '../../src/vault/ring/key-lives.ts'
import { makeDataKeys, type Purpose } from '../../src/vault/ring/key-ring.ts'

type Keeper = Omit<LivesKeeper, 'store'> & { store: Parameters<typeof keyLives.find>[0] }

export async function writeLives(keeper: Keeper, change: (now: KeyLives) => KeyLives): Promise<KeyLives> {
  const { store, keks, installationId, lives } = keeper
  const next = change(await lives.read())
  const former = lives.current()?.row.proof ?? Buffer.alloc(0)
  if (!(await keyLives.replace(store, await proveLives(keks.current, installationId, next), former)))
    throw new Error('somebody else wrote the lives')
  return lives.read()
}

/** Puts a new version into use at once, without waiting for the processes that lack it. Returns its number. */
export async function putIntoUse(keeper: Keeper, purpose: Purpose): Promise<number> {
  const { store, keks } = keeper
  const former = (await dataKeys.findActiveVersion(store, purpose)) ?? 0
  const version = former + 1
  const [key] = await makeDataKeys(keks.current, [purpose], version)
  if (!key) throw new Error('no key was made')
  await dataKeys.setState(store, { purpose, version: former, state: 'DECRYPT_ONLY' })
  await dataKeys.insert(store, key)
  await writeLives(keeper, now =>
    withKeys(now, purpose, (keys, epoch) => activating(version)(adding(purpose, version)(keys, epoch))),
  )
  return version
}
