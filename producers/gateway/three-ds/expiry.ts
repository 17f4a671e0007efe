// Ends abandoned authentications: when the time of one is over, it ends as U and its client is told. Every process runs
// this; where two try at once, one of them is first.

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
