// Makes the request of an act, before its proof: what the person saw, why, who, and until when. The challenge of the passkey is
// the hash of exactly this, so nothing of it can be changed after the touch.
import { randomBytes } from 'node:crypto'
import type { Clock } from '../../../src/clock.ts'
import type { Act } from '../../../src/job/system/act.ts'
import * as pendingActs from '../../../src/store/console/pending-acts.ts'
import type { Db } from '../../../src/store/pool.ts'

/** How long a person has for the touch. A worker refuses an act that is valid for longer. */
const LASTS_S = 115

/** The request of an act without its proof. */
export type Unproved = Omit<Act, 'proof'>
/** What the caller says of it; the rest is made here. */
export type Intended = Omit<Unproved, 'nonce' | 'expires_at'>

/** Stores the act, so that what is sent later is what was shown. */
export async function beginAct(
  { store, clock }: { store: Db; clock: Clock },
  intended: Intended,
  { sessionHash, batchNo }: Pick<pendingActs.PendingAct, 'sessionHash' | 'batchNo'>,
): Promise<Unproved> {
  const nonce = randomBytes(16).toString('base64url')
  const request: Unproved = { ...intended, nonce, expires_at: Math.floor(clock() / 1000) + LASTS_S }
  await pendingActs.insert(store, {
    nonce,
    sessionHash,
    batchNo,
    request: { ...request },
    expiresAt: request.expires_at * 1000,
  })
  return request
}
