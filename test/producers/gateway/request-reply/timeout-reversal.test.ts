// Reversals of operations that timed out, as one gateway process holds them. While neither the queue nor the store takes
// one, its offers leave no listener in this process. A repeat without time is told how the reversal ended.
import { afterEach, expect, it, vi } from 'vitest'
import {
  openTimeoutReversals,
  reversalJti,
  type TimeoutReversalDeps,
} from '../../../../producers/gateway/request-reply/timeout-reversal.ts'
import { Fault } from '../../../../src/errors.ts'
import { envelopeDigest } from '../../../../src/job/envelope/digest.ts'
import { receiptId } from '../../../../src/job/envelope/ids.ts'
import { openLog } from '../../../../src/log.ts'
import { until } from '../../../support/until.ts'

const CALLER = { client: { clientId: 'c' } } as never
const operationOf = (mayBeQueued: boolean, kind = 'token-create') =>
  ({ kind, receiptId: 'r', envelopeDigest: Buffer.alloc(32), mayBeQueued: () => mayBeQueued }) as never

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
    sign: async () => ({ id: 'j_1', data: { jws: 'x' }, answers: 'asked', issuedAt: 0, expiresAt: 0 }),
  } as unknown as TimeoutReversalDeps
  const listening = countListeners()
  const reversals = openTimeoutReversals(deps)
  const before = listening()
  expect(await reversals.reverse(CALLER, operationOf(true), 'digest')).toBe('REQUIRED')
  await until(() => offered >= 8, { what: 'eight offers' })
  // One listener for each of the waiting offers to queue and store, and the two of the wait for both.
  expect(listening() - before).toBeLessThanOrEqual(4)
  expect(reversals.pending()).toBe(1)
  await reversals.close()
  await until(() => listening() - before <= 2, { what: 'nothing listens' })
})

/** What the worker answers to the reversal of `operationOf`. */
const answerOf = (more: object) =>
  ({
    receipt_id: receiptId('c', reversalJti('r', Buffer.alloc(32).toString('base64url'))),
    kind: 'reversal',
    status: 'SUCCEEDED',
    answers: 'asked',
    envelope: envelopeDigest('x').toString('base64url'),
    ...more,
  }) as never

function openReversals() {
  const deps = {
    queues: { add: async () => {} },
    clock: Date.now,
    log: openLog('silent'),
    sign: async () => ({ id: 'j_1', data: { jws: 'x' }, answers: 'asked', issuedAt: 0, expiresAt: 0 }),
  } as unknown as TimeoutReversalDeps
  return openTimeoutReversals(deps)
}

it.each([
  [{ record: { reversal_status: 'COMPLETED' } }, 'COMPLETED'],
  [{ record: { reversal_status: 'NONE' } }, 'NONE'],
  // Nobody knows what the job has done.
  [{ error: { code: 500, reversal_status: 'NONE' } }, 'REQUIRED'],
])('a repeat whose job has no time left is told how the earlier reversal ended: %j', async (answer, status) => {
  const reversals = openReversals()
  expect(await reversals.reverse(CALLER, operationOf(true), 'digest')).toBe('REQUIRED')
  reversals.resolve(answerOf({ status: 'record' in answer ? 'SUCCEEDED' : 'FAILED', ...answer }))
  expect(await reversals.awaitReversal('r', Date.now() + 10_000)).toBe(true)
  expect(await reversals.reverse(CALLER, operationOf(false), 'digest')).toBe(status)
  await reversals.close()
})

it.each([
  ['of another kind', { kind: 'token-create' }],
  ['to another request', { answers: 'else', envelope: 'else' }],
  ['to an earlier envelope that was refused', { status: 'FAILED', envelope: 'else' }],
  ['that leaves no receipt, to an earlier envelope', { status: 'FAILED', answers: undefined, envelope: 'else' }],
])('an answer %s does not end the wait for a reversal', async (_, replay) => {
  const reversals = openReversals()
  await reversals.reverse(CALLER, operationOf(true), 'digest')
  reversals.resolve(answerOf({ record: { reversal_status: 'NONE' }, ...replay }))
  expect(await reversals.awaitReversal('r', Date.now() + 10)).toBe(false)
  reversals.resolve(answerOf({ record: { reversal_status: 'COMPLETED' } }))
  expect(await reversals.awaitReversal('r', Date.now() + 10_000)).toBe(true)
  expect(await reversals.reverse(CALLER, operationOf(false), 'digest')).toBe('COMPLETED')
  await reversals.close()
})

it('a repeat of a lifecycle action, which may be a deletion that stands, is not told that it was undone', async () => {
  const reversals = openReversals()
  await reversals.reverse(CALLER, operationOf(true, 'token-lifecycle'), 'digest')
  reversals.resolve(answerOf({ record: { reversal_status: 'COMPLETED' } }))
  expect(await reversals.reverse(CALLER, operationOf(false, 'token-lifecycle'), 'digest')).toBe('REQUIRED')
  await reversals.close()
})

it('a job that never left, of an operation without an earlier reversal, leaves nothing to undo', async () => {
  const reversals = openReversals()
  expect(await reversals.reverse(CALLER, operationOf(false), 'digest')).toBe('NONE')
  await reversals.close()
})
