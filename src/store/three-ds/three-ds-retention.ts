// How long 3-D Secure data are kept: JWTs as long as they can be used, authentications as long as a payment can be
// disputed. The scheduler runs the sweep every hour.

import type { Db } from '../pool.ts'
import * as authentications from './authentications.ts'
import * as contracts from './three-ds-contracts.ts'
import * as jwts from './three-ds-jwts.ts'

const DAY_MS = 86_400_000
export const THREE_DS_RETENTION = { jwtDays: 1, authenticationDays: 750, rowsMax: 10_000 } as const

interface SweptThreeDs {
  jwts: number
  authentications: number
}

/**
 * Erases everything that is too old, in steps of `rowsMax`, and the former keys of contracts whose time is over. `now`:
 * ms since the epoch.
 */
export async function sweepThreeDs(db: Db, now: number): Promise<SweptThreeDs> {
  await contracts.eraseEndedKeys(db)
  const { jwtDays, authenticationDays, rowsMax } = THREE_DS_RETENTION
  return {
    jwts: await untilDone(() => jwts.eraseOld(db, now - jwtDays * DAY_MS, rowsMax)),
    authentications: await untilDone(() => authentications.eraseOld(db, now - authenticationDays * DAY_MS, rowsMax)),
  }
}

async function untilDone(some: () => Promise<number>): Promise<number> {
  for (let all = 0; ; ) {
    const deleted = await some()
    all += deleted
    if (deleted < THREE_DS_RETENTION.rowsMax) return all
  }
}
