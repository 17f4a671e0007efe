// The digest by which a result names what it answers, and which result answers a job.
import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { schemas } from '../../../cli/docs/schema.ts'
import { isAnswerTo } from '../../../src/job/answer/result.ts'
import { askedOf, ledgerText, NOT_UNDERSTOOD } from '../../../src/job/envelope/digest.ts'

interface Example {
  kind: string
  request: Record<string, unknown>
  text: string
  answers: string
}

const sha256 = (text: string) => createHash('sha256').update(text).digest('base64url')
const digestOf = (kind: string, request: Record<string, unknown>) =>
  askedOf(kind, request).digest()?.toString('base64url')

describe('what a result answers', () => {
  it('has the digests of the examples in docs/schema', () => {
    const { 'x-answers': examples } = schemas()['result'] as { 'x-answers': Example[] }
    expect(examples.map(({ answers }) => answers)).toEqual([
      '9yJ9uXMIKXz38vV2ZKKUOo_5AT38ul_bFq2RA4ptDy4',
      'HsC_GXW0R8uHjoOeK1_1jsQH7Gezm8t_3t3VkoITZvw',
    ])
    for (const { kind, request, text, answers } of examples)
      expect([sha256(text), digestOf(kind, request)]).toEqual([answers, answers])
    const [, ledger] = examples
    const { transactions } = ledger?.request ?? {}
    const { request: inShort } = JSON.parse(ledger?.text ?? '') as { request: Record<string, unknown> }
    expect(inShort).toEqual({ ...ledger?.request, transactions: sha256(JSON.stringify(transactions)) })
  })

  it('is the same after the way through an envelope, in whatever order the members of the request are', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string({ unit: 'grapheme' }), fc.jsonValue()), request => {
        const shuffled = Object.fromEntries(Object.entries(request).reverse())
        const read = JSON.parse(JSON.stringify(shuffled)) as Record<string, unknown>
        expect(digestOf('token-create', read)).toBe(digestOf('token-create', request))
        expect(digestOf('token-update', read)).not.toBe(digestOf('token-create', request))
      }),
    )
  })

  it('differs for a chunk of other lines, or that says more of its batch, which is the same chunk', () => {
    const request = { batch_id: 'b', chunk: 0, transactions: [{ line: 2 }] }
    const other = { ...request, transactions: [{ line: 3 }] }
    const more = { ...request, last: true }
    const digests = [request, other, more, { ...request, columns: { line: [] } }].map(one =>
      digestOf('transaction-batch', one),
    )
    expect(new Set(digests).size).toBe(4)
    expect(askedOf('transaction-batch', request).ledgerText()).toBe(ledgerText(request))
    expect(askedOf('transaction-batch', more).ledgerText()).toBe(ledgerText(request))
  })

  it('is not made of a request that was not understood', () => {
    expect(NOT_UNDERSTOOD.digest()).toBeNull()
    expect(() => NOT_UNDERSTOOD.text()).toThrow()
  })
})

const JOB = { kind: 'token-create', answers: 'asked', envelope: 'own' }

it.each([
  [true, 'the success in its envelope', {}],
  [true, 'the success in another envelope', { envelope: 'other' }],
  [false, 'the success of another request', { answers: 'else', envelope: 'other' }],
  [false, 'the success of another kind', { kind: 'token-update' }],
  [true, 'the refusal of its envelope', { status: 'FAILED' }],
  [false, 'the refusal of another envelope', { status: 'FAILED', envelope: 'other' }],
  [true, 'the refusal of its envelope as one that was not understood', { status: 'FAILED', answers: undefined }],
  [false, 'one without both', { answers: undefined, envelope: undefined }],
] as const)('is an answer to a job, %s: %s', (is, _, result) => {
  expect(isAnswerTo({ status: 'SUCCEEDED', ...JOB, ...result } as never, JOB)).toBe(is)
})
