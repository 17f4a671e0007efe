// The clock of authentications: those that nobody came back for end as U when their time is over, and their clients are
// told. Every process runs one; of two at once one is first.
import { setTimeout as pause } from 'node:timers/promises'
import { Fault } from '../../../src/errors.ts'
import { expireOverdue } from '../../../src/three-ds/result.ts'
import type { ThreeDsDeps } from './deps.ts'

const LOOK_MS = 1_000
const TAKE_MAX = 100

/** Runs until it is closed. */
export function startExpiry({ ports, metrics, log }: Pick<ThreeDsDeps, 'ports' | 'metrics' | 'log'>) {
  const closed = new AbortController()
  async function run(): Promise<void> {
    while (!closed.signal.aborted) {
      try {
        for (const { state } of await expireOverdue(ports, TAKE_MAX)) metrics.threeDsEnded.inc({ outcome: state })
      } catch (error) {
        const expected = error instanceof Fault && error.code !== 'defect'
        log[expected ? 'debug' : 'error']({ err: error }, 'authentications could not be ended; they will be')
      }
      await pause(LOOK_MS, undefined, { signal: closed.signal }).catch(() => {})
    }
  }
  const running = run()
  return async (): Promise<void> => {
    closed.abort()
    await running
  }
}
