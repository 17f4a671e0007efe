// A reversal that neither the queue nor the store takes is offered repeatedly. An offer that has ended must leave no
// listener in this process.
import { afterEach, expect, it, vi } from 'vitest'
import {
  openTimeoutReversals,
  type TimeoutReversalDeps,
} from '../../../../producers/gateway/operations/timeout-reversal.ts'
import { Fault } from '../../../../src/errors.ts'
import { openLog } from '../../../../src/log.ts'
import { until } from '../../../support/until.ts'

afterEach(() => vi.restoreAllMocks())

/** Listeners for the end of anything that can be aborted, added and not removed. */
function countListeners(): () => number {
  let listening = 0
  const { addEventListener, removeEventListener } = EventTarget.prototype
  vi.spyOn(EventTarget.prototype, 'addEventListener').mockImplementation(function (this: EventTarget, ...args) {
    if (args[0] === 'abort') listening += 1
    return addEventListener.apply(this, args as never)
  })
  vi.spyOn(EventTarget.prototype, 'removeEventListener').mockImplementation(function (this: EventTarget, ...args) {
    if (args[0] === 'abort') listening -= 1
    return removeEventListener.apply(this, args as never)
  })
  return () => listening
}

it('a reversal that is offered for long leaves no listener behind', async () => {
  let offered = 0
  const away = async () => {
    offered += 1
    throw new Fault('queue_away')
  }
  const deps = {
    queues: { add: away },
    store: { query: away },
    clock: Date.now,
    log: openLog('silent'),
    sign: async () => ({ id: 'j_1', data: { jws: 'x' }, issuedAt: 0, expiresAt: 0 }),
  } as unknown as TimeoutReversalDeps
  const caller = { client: { clientId: 'c' } } as never
  const operation = { receiptId: 'r', envelopeDigest: Buffer.alloc(32), mayBeQueued: () => true } as never
  const listening = countListeners()
  const reversals = openTimeoutReversals(deps)
  const before = listening()
  expect(await reversals.reverse(caller, operation, 'digest')).toBe('REQUIRED')
  await until(() => offered >= 8, { ms: 30_000, what: 'eight offers' })
  // One listener for each of the waiting offers to queue and store, and the two of the wait for both.
  expect(listening() - before).toBeLessThanOrEqual(4)
  expect(reversals.pending()).toBe(1)
  await reversals.close()
  await until(() => listening() - before <= 2, { ms: 10_000, what: 'nothing listens' })
})
