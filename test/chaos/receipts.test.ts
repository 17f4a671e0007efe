// A job that comes again is answered from its receipt, whoever repeats it, and also if many copies come at once.
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { panOf } from '../../bin/sample/pan.ts'
import type { Client } from '../../producers/client.ts'
import { signAsk } from '../../producers/envelope.ts'
import { isRefusal } from '../../src/errors.ts'
import { describeEngines } from '../support/engines.ts'
import { type Installation, openInstallation } from '../support/installation.ts'
import { until } from '../support/until.ts'
import { QUICK, stateOf } from './bundle.ts'

const COPIES = 20
const REPEATS = 50

describeEngines('a job that comes again', engine => {
  let installation: Installation
  let client: Client
  let cards = 0
  beforeAll(async () => {
    installation = await openInstallation(engine, QUICK)
    await Promise.all([1, 2].map(() => installation.startWorkers({ roles: ['interactive'] })))
    client = await installation.connect()
  })
  afterAll(() => installation?.close())

  const request = async () => {
    const card = { cardNumber: panOf(cards++, 5), expiryMonth: 12, expiryYear: 2031 }
    return { token_scope: installation.scope, ...(await client.encryptCard(card)) }
  }
  const ask = async <R>(text: string, values: unknown[] = []) =>
    (await installation.vault.store.query<R>({ text, values })).rows
  const state = () => stateOf({ ...installation, ask }, installation.scope)

  it('as another request is refused, by name, and does nothing', async () => {
    const jti = randomUUID()
    expect(await client.call('token-create', await request(), { jti })).toMatchObject({ code: 200 })
    const before = await state()
    const refused = { status: 'FAILED', code: 400, error: { details: { 'body.jti': { code: 'jti_reused' } } } }
    expect(await client.call('token-create', await request(), { jti })).toMatchObject(refused)
    const id = 't00000000000000000000000000'
    expect(await client.call('token-lifecycle', { id, action: 'DELETE' }, { jti })).toMatchObject(refused)
    expect(await state()).toEqual(before)
  })

  it('as the same request is answered by the same result, and does nothing', async () => {
    const jti = randomUUID()
    const same = await request()
    const first = await client.call('token-create', same, { jti })
    const before = await state()
    const again = await client.call('token-create', same, { jti })
    expect(again).toEqual({ ...first, attempt: again.attempt, envelope: again.envelope })
    expect(await state()).toEqual(before)
  })

  it('is answered each time, however soon after its answer it comes', async () => {
    const jti = randomUUID()
    const same = await request()
    const results: string[] = []
    for (let times = 0; times < REPEATS; times++) {
      const { result_id: id } = await client.call('token-create', same, { jti })
      results.push(id)
    }
    expect(new Set(results).size).toBe(1)
  })

  it('is answered by its refusal, too, though it would be accepted by now', async () => {
    const { record } = await client.call('token-create', await request())
    const lifecycle = { id: record?.['reuse_token'], action: 'SUSPEND' }
    await client.call('token-lifecycle', lifecycle, { sequence: 5 })
    const jti = randomUUID()
    const stale = { code: 400, error: { details: { 'body.sequence': { code: 'sequence_stale' } } } }
    const refused = await client.call('token-lifecycle', { ...lifecycle, action: 'ACTIVATE' }, { jti, sequence: 4 })
    expect(refused).toMatchObject(stale)
    const again = await client.call('token-lifecycle', { ...lifecycle, action: 'ACTIVATE' }, { jti, sequence: 6 })
    expect(again).toMatchObject({ ...stale, result_id: refused.result_id })
  })

  it(`has one effect, though ${COPIES} of it come at once under as many ids and signatures`, async () => {
    const jti = randomUUID()
    const same = { kind: 'token-create' as const, request: await request() }
    const before = await state()
    const envelopes = Array.from({ length: COPIES }, async (_, index) => {
      // Each envelope is signed with another time: equal requests, different envelopes.
      const signed = await signAsk(installation.credentials, same, { jti }, Date.now() - index * 1_000)
      if (isRefusal(signed)) throw new Error(signed.reason)
      return { id: `copy_${index}_${signed.id}`, data: signed.data }
    })
    await installation.queues.addBulk('token-create', await Promise.all(envelopes))
    const isDone = async () => Object.values(await installation.queues.depth('token-create')).every(n => n === 0)
    await until(isDone, { what: 'the end of every copy' })
    expect(await state()).toMatchObject({
      tokens: Number(before['tokens']) + 1,
      versions: Number(before['versions']) + 1,
    })
    const receipts = await ask(`select count(*)::int as n, max(revision) as r from tokenmill.receipt where jti = $1`, [
      jti,
    ])
    expect(receipts).toEqual([{ n: 1, r: 1 }])
    expect(await client.call('token-create', same.request, { jti })).toMatchObject({ code: 200, revision: 1 })
  })
})
