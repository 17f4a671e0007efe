// Card data are removed from a failed copy after 15 minutes. A copy of any form must not stop this for other copies.
import { describe, expect, it } from 'vitest'
import { JOB_TYP } from '../../src/job/envelope/envelope.ts'
import type { FailedCopy } from '../../src/queue/failed.ts'
import { withoutCard } from '../../workers/process/housekeeping.ts'
import { base64url } from './forge.ts'

const head = base64url(JSON.stringify({ alg: 'EdDSA', kid: 'k', typ: JOB_TYP }))
const copyOf = (request: string, more: Partial<FailedCopy> = {}): FailedCopy => ({
  jws: `${head}.${base64url(`{"iss":"c${'a'.repeat(25)}","request":${request}}`)}.AA`,
  kind: 'token-create',
  code: 'defect',
  attempt: 8,
  failedAt: 0,
  jobId: 'j_1',
  clientId: `c${'a'.repeat(25)}`,
  ...more,
})

describe('a failed copy', () => {
  it.each([
    ['an encrypted card', copyOf('{"encrypted_card":"x"}')],
    ['a block', copyOf('{}', { block: 'x' })],
    ['a clear card', copyOf('{"card":{"cardNumber":"4111111111111111"}}')],
    ['a card for a token', copyOf('{"id":"4111 1111 1111 1111"}')],
    [
      'a whole number in a line of the ledger',
      copyOf('{"transactions":[1,{"line":2,"transaction":{"masked_card":"4111111111111111"}}]}'),
    ],
    ['a whole number in a column of the ledger', copyOf('{"columns":{"masked_card":["","4111111111111111"]}}')],
    ['nobody knows what', copyOf('{}', { jws: 'x' })],
  ])('that holds %s is emptied', (_, copy) => {
    const { jws, block, ...rest } = withoutCard(copy)
    expect({ jws, block }).toEqual({ jws: '', block: undefined })
    expect(rest).toMatchObject({ kind: 'token-create', code: 'defect', jobId: 'j_1' })
  })

  it.each([
    '{"id":"t0123456789abcdefghjkmnpqr","action":"SUSPEND"}',
    '{"transactions":[{"line":2,"transaction":{"masked_card":"411111******1111"}},null],"columns":null}',
    ...['null', '[]', '1', '"x"'],
  ])('without card data stays as it is: %s', request => {
    const copy = copyOf(request)
    expect(withoutCard(copy)).toEqual(copy)
  })

  it('that is nested without end is dealt with like any other', () => {
    const copy = copyOf(`{"a":${'['.repeat(200_000)}${']'.repeat(200_000)}}`)
    expect(withoutCard(copy)).toEqual(copy)
  })
})
