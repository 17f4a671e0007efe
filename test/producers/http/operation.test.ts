// Whose answer a result is: under one key there may be other envelopes, which were given up, or ask for something else.
import { expect, it } from 'vitest'
import { openOperation } from '../../../producers/http/operation.ts'
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
      ...{ kind: 'token-create', receiptId: RECEIPT, deadline: Number.POSITIVE_INFINITY },
      signed: { id: 'j', data: { jws: 'second' }, issuedAt: 0, expiresAt: 0 },
    },
    { queues: { add: async () => {} } as never, clock: () => 0, isAway: () => false, givenUp: givenUp.signal },
  )
  const result = { receipt_id: RECEIPT, result_id: 'r', ...told }
  operation.resolve({ ...result, envelope: nameOf('first') } as never)
  operation.resolve(result as never)
  operation.resolve({ ...result, envelope: nameOf('second'), jti: 'own' } as never)
  expect(await operation.answer).toMatchObject({ envelope: nameOf('second'), jti: 'own' })
  givenUp.abort()
})
