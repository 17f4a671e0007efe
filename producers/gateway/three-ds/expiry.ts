// The clock of authentications: those that nobody came back for end as U when their time is over, and their clients are
// told. Every process runs one; of two at once one is first.

import { every } from '../../../src/recurring.ts'
import { expireOverdue } from '../../../src/three-ds/result.ts'
import type { ThreeDsDeps } from './deps.ts'

const EXPIRE_MS = 1_000
const TAKE_MAX = 100

/** Returns how to stop it. */
export function startExpiry({ ports, metrics, log }: Pick<ThreeDsDeps, 'ports' | 'metrics' | 'log'>) {
  async function expire(): Promise<void> {
    for (const { state } of await expireOverdue(ports, TAKE_MAX)) metrics.threeDsEnded.inc({ outcome: state })
  }
  return every(EXPIRE_MS, expire, { log })
}
