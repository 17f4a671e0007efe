// How long 3-D Secure keeps what it knows: JWTs no longer than they could be used, authentications as long as a payment can
// be disputed over. It runs once in a while, in one worker.
import type { Db } from '../pool.ts'

const DAY_MS = 86_400_000
export const THREE_DS_RETENTION = { jwtDays: 1, authenticationDays: 750, rowsMax: 10_000 } as const

export interface SweptThreeDs {
  jwts: number
  authentications: number
}

/** `rowsMax` at a time, until nothing is left. `now`: ms since the epoch. */
export async function sweepThreeDs(db: Db, now: number): Promise<SweptThreeDs> {
  return {
    jwts: await untilDone(() => deleteJwts(db, now)),
    authentications: await untilDone(() => deleteAuthentications(db, now)),
  }
}

async function untilDone(some: () => Promise<number>): Promise<number> {
  for (let all = 0; ; ) {
    const deleted = await some()
    all += deleted
    if (deleted < THREE_DS_RETENTION.rowsMax) return all
  }
}

export async function deleteJwts(db: Db, now: number): Promise<number> {
  const { count } = await db.query({
    text: `delete from tokenmill.threeds_jwt where jti = any(array(
  select jti from tokenmill.threeds_jwt where issued_at < $1 order by issued_at limit $2))`,
    values: [new Date(now - THREE_DS_RETENTION.jwtDays * DAY_MS), THREE_DS_RETENTION.rowsMax],
  })
  return count
}

export async function deleteAuthentications(db: Db, now: number): Promise<number> {
  const { count } = await db.query({
    text: `delete from tokenmill.authentication where authentication_id = any(array(
  select authentication_id from tokenmill.authentication where created_at < $1 order by created_at limit $2))`,
    values: [new Date(now - THREE_DS_RETENTION.authenticationDays * DAY_MS), THREE_DS_RETENTION.rowsMax],
  })
  return count
}
