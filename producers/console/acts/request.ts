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

/** Stores the act, so that what is sent later is what was shown. `sessionHash`: null while a person enrols. */
export async function beginAct(
  { store, clock }: { store: Db; clock: Clock },
  intended: Intended,
  sessionHash: Buffer | null,
): Promise<Unproved> {
  const nonce = randomBytes(16).toString('base64url')
  const request: Unproved = { ...intended, nonce, expires_at: Math.floor(clock() / 1000) + LASTS_S }
  await pendingActs.insert(store, { nonce, sessionHash, request: { ...request }, expiresAt: request.expires_at * 1000 })
  return request
}
