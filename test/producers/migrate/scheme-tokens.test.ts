// Under which batches `migrate --scheme-tokens` asks for scheme tokens, and what it tells of refusals. The client is
// scripted: there is no vault.
import { expect, it } from 'vitest'
import type { Client } from '../../../producers/client.ts'
import { withSchemeTokens } from '../../../producers/migrate/scheme-tokens.ts'
import type { CreatedColumns } from '../../../src/job/answer/created-columns.ts'
import type { Result } from '../../../src/job/answer/result.ts'
import type { RecordResult } from '../../../src/job/outcome.ts'
import { holdsPossiblePan } from '../../../src/token/possible-pan.ts'
import { makeParties } from '../bundle.ts'

const CREATED: RecordResult = { line: 2, outcome: 'CREATED', code: 200, reuse_token: `t${'0'.repeat(26)}` }
const REJECTED: RecordResult = { line: 2, outcome: 'REJECTED', code: 400, reason: 'pan_luhn' }
const resultOf = (more: Partial<Result>) => ({ status: 'SUCCEEDED', ...more }) as Result
const refusedFor = (code: string) =>
  resultOf({
    status: 'FAILED',
    error: { code: 400, message: '', details: { 'body.x': { code, message: '' } } } as never,
  })
const taken = resultOf({
  status: 'FAILED',
  error: { code: 400, message: '', details: { 'body.jti': { code: 'jti_reused', message: '' } } } as never,
})

/** The ids of the batches that are asked, and what is told, for a chunk of the file under this id. */
async function asked(batchId: string, record: RecordResult, answers: Result[], chunk = 0) {
  const { credentials } = await makeParties()
  const captureKey = credentials.captureKeys.jwe
  if (!captureKey) throw new Error('no key')
  const ids: string[] = []
  const lines: string[] = []
  const client = {
    clientId: credentials.signingKey.clientId,
    call: async (_: string, request: { batch_id: string }) => {
      ids.push(request.batch_id)
      return answers.shift() ?? resultOf({ records: [CREATED] })
    },
  } as unknown as Client
  const plan = { batchId, recordKind: 'token-create' as const, acceptedAt: 1_790_000_000, captureKey }
  const part = { plan, chunk, isLast: true, timeoutMs: 1, stop: new AbortController().signal }
  await withSchemeTokens(resultOf({ records: [record] }), { ...part, tell: line => lines.push(line) }, client)
  return { ids, lines }
}

it('asks for the scheme tokens of a file in a batch whose name no other file has', async () => {
  const long = 'from-the-bank-of-somewhere-all-the-cards-of-the-year-2026-part-'
  const both = (id: string) => asked(id, CREATED, [taken], 12).then(({ ids }) => ids)
  expect(await both('short')).toEqual(['short-s1', 'short-s2-12'])
  // An id of sixty characters leaves room for what is added.
  const sixty = long.slice(0, 59).padEnd(60, 'x')
  expect((await both(sixty))[0]).toBe(`${sixty}-s1`)
  const names = [...(await both(`${long}1`)), ...(await both(`${long}2`)), ...(await both(sixty))]
  expect(new Set(names).size).toBe(6)
  for (const name of names) expect(name).toMatch(/^[A-Za-z0-9_-]{1,64}$/)
  expect(names[0]).toMatch(/^from-the-bank-of-somewhere-.*-s1$/)
})

it('makes no name that could be a card number from one that is none', async () => {
  const card = '4111-1111-1111-1111'
  for (let at = 20; at < 50; at += 1) {
    const id = `${'x'.repeat(at - 1)}_${card}22222222222222222222222222222222222222222222`.slice(0, 64)
    if (holdsPossiblePan(id)) continue
    const { ids } = await asked(id, CREATED, [taken], 12)
    expect(ids.filter(holdsPossiblePan)).toEqual([])
  }
})

it('asks for the scheme tokens of records that the result tells of in columns, and tells of all in rows', async () => {
  const { credentials } = await makeParties()
  const captureKey = credentials.captureKeys.jwe
  if (!captureKey) throw new Error('no key')
  const sent: number[] = []
  const client = {
    clientId: credentials.signingKey.clientId,
    call: async (_: string, request: { block: { records: number } }) => {
      sent.push(request.block.records)
      return resultOf({ records: [{ line: 4, outcome: 'REJECTED', code: 400, reason: 'scheme_card_ineligible' }] })
    },
  } as unknown as Client
  const columns: CreatedColumns = {
    line: [2, 4],
    reuse_token: `t${'0'.repeat(26)}`.repeat(2),
    bin: ['411111'],
    last_four: '0021,0039',
    expiry_month: [12],
    expiry_year: [2031],
    brand: ['VISA'],
    reference_outcome: [''],
    others: [1],
  }
  const plan = { batchId: 'file', recordKind: 'token-create' as const, acceptedAt: 1_790_000_000, captureKey }
  const part = { plan, chunk: 0, isLast: true, timeoutMs: 1, stop: new AbortController().signal, tell: () => {} }
  const told = await withSchemeTokens(resultOf({ records: [{ ...REJECTED, line: 3 }], columns }), part, client)
  expect(sent).toEqual([2])
  expect(told).not.toHaveProperty('columns')
  expect(told.records?.map(({ line, outcome, reason, last_four }) => [line, outcome, reason, last_four])).toEqual([
    [2, 'CREATED', 'internal', '0021'],
    [3, 'REJECTED', 'pan_luhn', undefined],
    [4, 'CREATED', 'scheme_card_ineligible', '0039'],
  ])
})

it('tells that the batch cannot end where the row for a chunk without tokens is refused', async () => {
  expect((await asked('file', REJECTED, [refusedFor('role_missing')])).lines).toEqual([
    expect.stringMatching(/file-s1 .*role_missing/),
  ])
  // Another run has sent the chunk.
  expect((await asked('file', REJECTED, [taken])).lines).toEqual([])
  expect((await asked('file', REJECTED, [])).lines).toEqual([])
})
