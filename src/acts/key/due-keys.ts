// Which data keys should be replaced soon, and why: their cryptoperiod ends, or they have made their share of seals.
// Workers replace a key that has made its share of seals without an operator.
import * as dataKeys from '../../store/access/data-keys.ts'
import type { Db } from '../../store/pool.ts'
import { isExpiring, replaceBy } from '../../vault/ring/cryptoperiod.ts'
import { PURPOSES, type Purpose } from '../../vault/ring/key-ring.ts'
import { TURNING } from '../../vault/ring/turning.ts'

/** Half of the seals that a key may make, so that there is time left to replace it. */
export const FULL_SEALS = dataKeys.SEALS_MAX / 2

export interface DueKey {
  purpose: Purpose
  version: number
  why: 'cryptoperiod' | 'seals'
  /** The end of the cryptoperiod, ms since the epoch. */
  replaceBy: number
  /** Whether `key rotate` can replace it. */
  turns: boolean
}

export async function listDue(db: Db, now: number): Promise<DueKey[]> {
  const keys = await dataKeys.list(db)
  return keys.flatMap(({ purpose: name, version, state, seals, activatedAt }) => {
    const purpose = PURPOSES.find(known => known === name)
    if (!purpose || state !== 'ACTIVE' || activatedAt === null) return []
    const why = seals >= FULL_SEALS ? 'seals' : isExpiring(purpose, activatedAt, now) ? 'cryptoperiod' : undefined
    // The key `analytics` is listed, too, but isn't replaced because of its date: others keep the values that it made.
    const turns = !TURNING[purpose].changesValues
    return why ? [{ purpose, version, why, replaceBy: replaceBy(purpose, activatedAt), turns }] : []
  })
}
