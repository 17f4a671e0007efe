// Whose answer a result is: under one key there may be other envelopes, which were given up, or ask for something else. And
// how long a job is tried that a server refuses.
import { expect, it } from 'vitest'
import { openOperation } from '../../../producers/http/operation.ts'
import { Fault } from '../../../src/errors.ts'
import { envelopeDigest } from '../../../src/job/envelope/digest.ts'

const RECEIPT = '4b8f8d8e-7b0f-5a53-8c4e-5a0f8d1f2b3c'
const nameOf = (jws: string) => envelopeDigest(jws).toString('base64url')

it.each([
  ['of a success', { status: 'SUCCEEDED', revision: 1 }],
  ['of a refusal', { status: 'FAILED', revision: 1 }],
  ['beside a receipt', { status: 'FAILED', revision: 0 }],
  ['of a job that was undone', { status: 'FAILED', revision: 2 }],
])('an operation takes the result %s that answers its envelope, and no other', async (_, told) => {
  const givenUp = new AbortController()
  const operation = openOperation(
    {
      kind: 'token-create',
      receiptId: RECEIPT,
      deadline: Number.POSITIVE_INFINITY,
      signed: { id: 'j', data: { jws: 'second' }, answers: 'asked', issuedAt: 0, expiresAt: 0 },
    },
    { queues: { add: async () => {} } as never, clock: () => 0, isAway: () => false, givenUp: givenUp.signal },
  )
  const result = { receipt_id: RECEIPT, result_id: 'r', kind: 'token-create', answers: 'asked', ...told }
  operation.resolve({ ...result, envelope: nameOf('first') } as never)
  operation.resolve(result as never)
  operation.resolve({ ...result, envelope: nameOf('second'), kind: 'token-update' } as never)
  operation.resolve({ ...result, envelope: nameOf('second'), answers: 'else' } as never)
  operation.resolve({ ...result, envelope: nameOf('second'), jti: 'own' } as never)
  expect(await operation.answer).toMatchObject({ envelope: nameOf('second'), jti: 'own' })
  givenUp.abort()
})

it('an operation goes again soon after a result that is no answer to it, though the queue took the job', async () => {
  const givenUp = new AbortController()
  const sentAt: number[] = []
  const operation = openOperation(
    {
      kind: 'token-create',
      receiptId: RECEIPT,
      deadline: Number.POSITIVE_INFINITY,
      signed: { id: 'j', data: { jws: 'own' }, answers: 'asked', issuedAt: 0, expiresAt: 0 },
    },
    {
      queues: {
        add: async () => {
          sentAt.push(performance.now())
          // Each try comes upon the job of another envelope, but the last.
          const envelope = nameOf(sentAt.length < 6 ? 'other' : 'own')
          const result = { receipt_id: RECEIPT, kind: 'token-create', answers: 'asked', envelope }
          setImmediate(() => operation.resolve(result as never))
        },
        get: async () => undefined,
      } as never,
      clock: () => 0,
      isAway: () => false,
      givenUp: givenUp.signal,
    },
  )
  expect(await operation.answer).toMatchObject({ envelope: nameOf('own') })
  expect(sentAt).toHaveLength(6)
  givenUp.abort()
})

const refusal = (message: string) => new Fault('queue_away', new Error(message))
const OOM = "OOM command not allowed when used memory > 'maxmemory'. script: 7, on @user_script:1."
const LACKS_RIGHT =
  "ERR The user executing the script can't run this command or subcommand script: 7, on @user_script:1."

it.each<[string, { throws?: Error[]; held?: string; isRefused?: boolean }, boolean]>([
  ['a queue that is full', { throws: [refusal(OOM)] }, false],
  ['a store that is read-only before the job was sent', { isRefused: true }, false],
  ['a queue that denies a right in the middle of a script', { throws: [refusal(LACKS_RIGHT)] }, true],
  ['a queue whose first answer was lost', { throws: [refusal('Command timed out'), refusal(OOM)] }, true],
  ['a store without room, as workers show on the job', { held: 'store_busy' }, true],
])('an operation ends soon for %s', async (_, { throws = [], held, isRefused = false }, mayBeQueued) => {
  let now = 0
  let calls = 0
  const operation = openOperation(
    {
      kind: 'token-create',
      receiptId: RECEIPT,
      deadline: 600_000,
      signed: { id: 'j', data: { jws: 'first' }, answers: 'asked', issuedAt: 0, expiresAt: 0 },
    },
    {
      queues: {
        add: async () => {
          now += 500
          const error = throws[Math.min(calls, throws.length - 1)]
          calls += 1
          if (error) throw error
        },
        get: async () => ({ id: 'j', data: {}, timestamp: 0, ...(held === undefined ? {} : { failedReason: held }) }),
      } as never,
      clock: () => {
        now += 50
        return now
      },
      isAway: () => false,
      isRefused: () => isRefused,
      givenUp: new AbortController().signal,
    },
  )
  expect(await operation.answer).toBeUndefined()
  expect(now).toBeLessThan(10_000)
  expect(operation.mayBeQueued()).toBe(mayBeQueued)
})
