// CONTRACT 8 on idempotency over HTTP, and CONTRACT 4 and 5 on requests that aren't answered in time.

import { randomUUID } from 'node:crypto'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { reversalJti } from '../../../../producers/gateway/request-reply/timeout-reversal.ts'
import { envelopeDigest } from '../../../../src/job/envelope/digest.ts'
import { peek } from '../../../../src/job/envelope/envelope.ts'
import { receiptId } from '../../../../src/job/envelope/ids.ts'
import { describeEngines, describeOnRedis } from '../../../support/engines.ts'
import { type Installation, openInstallation } from '../../../support/installation.ts'
import { until } from '../../../support/until.ts'
import { basicOf, CARD, type Caller, encrypted, openGatewayFor } from '../bundle.ts'

const VISA = { cardNumber: '4111111111111111', expiryMonth: 12, expiryYear: 2030 }
const MASTERCARD = { cardNumber: '5555555555554444', expiryMonth: 11, expiryYear: 2031 }
const key = (value: string) => ({ 'idempotency-key': value })
const detailsOf = (answer: { body: Record<string, unknown> }) =>
  Object.fromEntries(
    Object.entries((answer.body['details'] ?? {}) as Record<string, { code: string }>).map(([f, { code }]) => [
      f,
      code,
    ]),
  )

const rowsOf = async (installation: Installation, text: string, values: unknown[] = []) =>
  (await installation.vault.store.query<Record<string, unknown>>({ text, values })).rows

describeOnRedis('an idempotency key', engine => {
  let installation: Installation
  let caller: Caller
  beforeAll(async () => {
    installation = await openInstallation(engine)
    await installation.openWorkers({ roles: ['interactive'] })
    caller = await openGatewayFor(installation)
  })
  afterAll(async () => {
    await caller?.close()
    await installation?.close()
  })
  const request = async (card = VISA) => ({
    token_scope: installation.scope,
    ...(await encrypted(card, installation.credentials)),
  })
  const put = (body: unknown, headers: Record<string, string>) => caller.call('PUT', CARD, { body, headers })
  const receiptsOf = (jti: string) =>
    rowsOf(installation, 'select outcome from tokenmill.receipt where jti = $1', [jti])

  it('makes a repeat the same operation, with the same answer', async () => {
    const body = await request()
    const first = await put(body, key('once'))
    const again = await put(body, key('once'))
    expect([again.status, again.body]).toEqual([200, first.body])
    expect(await receiptsOf('once')).toEqual([{ outcome: 'CREATED' }])
  })
  it('is read from x-vfi-api-idempotencykey too', async () => {
    const body = await request()
    const first = await put(body, { 'x-vfi-api-idempotencykey': 'other-name' })
    expect((await put(body, key('other-name'))).body).toEqual(first.body)
    expect(await receiptsOf('other-name')).toHaveLength(1)
  })
  it('gives all who use it at once the one answer', async () => {
    const body = await request(MASTERCARD)
    const answers = await Promise.all(Array.from({ length: 20 }, () => put(body, key('together'))))
    expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).toBe(1)
    expect(await receiptsOf('together')).toHaveLength(1)
  })
  it('with another request is 400 on body, at once and later', async () => {
    const body = await request()
    const other = await request(MASTERCARD)
    const both = await Promise.all([put(body, key('twice')), put(other, key('twice'))])
    expect(both.map(({ status }) => status).sort()).toEqual([200, 400])
    const late = await put(both[0]?.status === 200 ? other : body, key('twice'))
    expect([late.status, detailsOf(late)]).toEqual([400, { 'params.idempotency-key': 'jti_reused' }])
    const kind = await caller.call('DELETE', `${CARD}/t${'0'.repeat(26)}`, { headers: key('twice') })
    expect([kind.status, detailsOf(kind)]).toEqual([400, { 'params.idempotency-key': 'jti_reused' }])
  })
  it('of a card that was encrypted again is the same operation, at once and later', async () => {
    const card = { ...VISA, cardNumber: '6011601160116611', cardholderName: 'ANNA MEYER' }
    const answers = await Promise.all(
      [card, card, { ...card, expiryYear: 30 }, { ...card, expiryMonth: '12', cvv: '123' }].map(async one =>
        put(await request(one as never), key('again')),
      ),
    )
    const late = await put(await request({ ...card, issuer: 'nobody reads this' } as never), key('again'))
    expect([...answers, late].map(({ status }) => status)).toEqual([200, 200, 200, 200, 200])
    expect(new Set([...answers, late].map(({ text }) => text)).size).toBe(1)
    expect(await receiptsOf('again')).toEqual([{ outcome: 'CREATED' }])
    for (const other of [
      { ...card, cardholderName: 'BEN MEYER' },
      { ...card, expiryYear: 2031 },
      { ...card, cardNumber: '6011000990139424' },
      { ...card, sequenceNumber: '1' },
    ]) {
      const answer = await put(await request(other), key('again'))
      expect([answer.status, detailsOf(answer)]).toEqual([400, { 'params.idempotency-key': 'jti_reused' }])
    }
    const member = await put({ ...(await request(card)), token_type: 'REUSE' }, key('again'))
    expect([member.status, detailsOf(member)]).toEqual([400, { 'params.idempotency-key': 'jti_reused' }])
    expect(await receiptsOf('again')).toHaveLength(1)
  })
  it('of a refused card, or of a new card for a token, that was encrypted again gets the stored answer', async () => {
    const wrong = { ...VISA, cardNumber: '4111111111111112' }
    for (let time = 0; time < 2; time += 1)
      expect(detailsOf(await put(await request(wrong), key('again-refused')))).toEqual({
        'body.encrypted_card': 'pan_luhn',
      })
    expect(await receiptsOf('again-refused')).toHaveLength(1)
    const { reuse_token: id } = (await put(await request({ ...VISA, cardNumber: '3530111333300000' }), key('of-patch')))
      .body
    const patch = async () => {
      const { token_scope: _, ...body } = await request({ ...VISA, cardNumber: '6011111111111117' })
      return caller.call('PATCH', `${CARD}/${id}`, { body, headers: key('again-patch') })
    }
    const [first, again] = [await patch(), await patch()]
    expect([again.status, again.text]).toEqual([first.status, first.text])
    expect(await receiptsOf('again-patch')).toHaveLength(1)
  })
  it('of a write that was answered 202 is decided by a worker before it is answered again', async () => {
    const later = { ...key('again-later'), prefer: 'respond-async' }
    const card = { ...VISA, cardNumber: '6011601160116611' }
    const first = await put(await request(card), later)
    const place = first.headers.get('location')
    await until(async () => (await caller.call('GET', place ?? '')).body['status'] === 'SUCCEEDED')
    const again = await put(await request(card), later)
    expect([first.status, again.status, again.headers.get('location')]).toEqual([202, 202, place])
    const other = await put(await request(MASTERCARD), later)
    expect([other.status, detailsOf(other)]).toEqual([400, { 'params.idempotency-key': 'jti_reused' }])
  })
  it('of a PUT that asks for a 202 under the key of one that was answered at once is decided by a worker first', async () => {
    const card = { ...VISA, cardNumber: '6011000400000000' }
    const first = await put(await request(card), key('at-once'))
    const later = { ...key('at-once'), prefer: 'respond-async' }
    const other = await put(await request(MASTERCARD), later)
    expect([other.status, detailsOf(other)]).toEqual([400, { 'params.idempotency-key': 'jti_reused' }])
    const named = await put(await request({ ...card, expiryYear: 2033 }), later)
    expect([named.status, detailsOf(named)]).toEqual([400, { 'params.idempotency-key': 'jti_reused' }])
    const again = await put(await request(card), later)
    expect(again.status).toBe(202)
    const ended = await until(async () => {
      const { body } = await caller.call('GET', again.headers.get('location') ?? '')
      return body['status'] === 'PENDING' ? undefined : body
    })
    expect(ended).toMatchObject({ status: 'SUCCEEDED', record: { reuse_token: first.body['reuse_token'] } })
    expect(await receiptsOf('at-once')).toHaveLength(1)
  })
  it('of a PUT whose token was deleted since is told that it is DELETED, and makes no other', async () => {
    const body = await request({ ...VISA, cardNumber: '6011000990139424' })
    const { reuse_token } = (await put(body, key('gone'))).body
    expect((await caller.call('DELETE', `${CARD}/${reuse_token}`)).status).toBe(204)
    const again = await put(body, key('gone'))
    expect([again.status, again.body]).toEqual([200, { reuse_token, token_status: 'DELETED' }])
    const fresh = await put(await request({ ...VISA, cardNumber: '6011000990139424' }), key('gone-fresh'))
    expect(fresh.body['reuse_token']).not.toBe(reuse_token)
  })
  it('repeats a refusal as well', async () => {
    const body = await request({ ...VISA, cardNumber: '4111111111111112' })
    for (let time = 0; time < 2; time += 1)
      expect(detailsOf(await put(body, key('refused')))).toEqual({ 'body.encrypted_card': 'pan_luhn' })
    expect(await receiptsOf('refused')).toHaveLength(1)
  })
  it('belongs to its client', async () => {
    const other = await installation.addClient('neighbour')
    const authorization = await basicOf(other.clientFile)
    await put(await request(), key('mine'))
    const answer = await caller.call('PUT', CARD, {
      authorization,
      body: { ...(await request()), token_scope: other.scope },
      headers: key('mine'),
    })
    expect(answer.status).toBe(200)
  })
  it('has 1 to 128 printable characters, else 400', async () => {
    const body = await request()
    for (const bad of ['with blank', 'k'.repeat(129), 'ö'])
      expect(detailsOf(await put(body, key(bad)))).toEqual({ 'params.idempotency-key': 'field_format' })
    expect((await put(body, key(`!~${'k'.repeat(126)}`))).status).toBe(200)
  })
  it('of a caller who hung up stands for an operation that goes on', async () => {
    const body = await request({ ...VISA, cardNumber: '6011111111111117' })
    const hungUp = new AbortController()
    const gone = caller.call('PUT', CARD, { body, headers: key('hung-up'), signal: hungUp.signal }).catch(() => 'gone')
    // An operation may take less time than the pause of `until`.
    while (caller.gateway.deps.requestReply.inFlight() === 0) await nextTurn()
    hungUp.abort()
    await gone
    await until(async () => (await receiptsOf('hung-up')).length === 1)
    expect((await put(body, key('hung-up'))).body).toMatchObject({ last_four: '1117', token_status: 'ACTIVE' })
  })
})

describeEngines('without an answer in time', engine => {
  let installation: Installation
  let caller: Caller
  beforeAll(async () => {
    installation = await openInstallation(engine)
    caller = await openGatewayFor(installation, {
      TOKENMILL_GATEWAY_TIMEOUT_SECONDS: '1',
      TOKENMILL_GATEWAY_INFLIGHT: '3',
    })
  })
  afterAll(async () => {
    await caller?.close()
    await installation?.close()
  })

  describe('while nobody works', () => {
    it('an operation is answered 500 with reversal_status REQUIRED, and its reversal is queued', async () => {
      const begun = performance.now()
      const answer = await caller.put(VISA, {}, { headers: key('late') })
      // Well before the 30 s of a gateway that isn't told.
      expect(performance.now() - begun).toBeLessThan(100_000)
      expect(answer.body).toEqual({
        code: 500,
        message: 'Unexpected error; quote code and timestamp to support.',
        timestamp: expect.any(Number),
        reversal_status: 'REQUIRED',
      })
      expect(answer.status).toBe(500)
      const { clientId } = installation.credentials.signingKey
      const [job] = await installation.queues.list('token-create', ['waiting'], 0, 9)
      const [reversal] = await installation.queues.list('reversal', ['waiting'], 0, 9)
      const jwsOf = (of: typeof job) => (of?.data as { jws?: string } | undefined)?.jws ?? ''
      const claims = peek(jwsOf(reversal))
      const peeked = (jws: string) => (peek(jws) as { payload?: unknown }).payload ?? {}
      const receipt = receiptId(clientId, 'late')
      const envelope = envelopeDigest(jwsOf(job)).toString('base64url')
      expect(claims).toMatchObject({
        iss: 'gateway',
        payload: {
          client_id: clientId,
          kind: 'reversal',
          jti: reversalJti(receipt, envelope),
          request: { receipt_id: receipt, envelope },
        },
      })
      const { iat = 0, exp = 0 } = peeked(jwsOf(job)) as { iat?: number; exp?: number }
      expect(exp - iat).toBeCloseTo(1, 3)
    })
    it('its reversal is queued again though the queue server has lost it', async () => {
      expect((await caller.put(VISA)).body['reversal_status']).toBe('REQUIRED')
      const queued = async () => (await installation.queues.list('reversal', ['waiting'], 0, 99)).map(({ id }) => id)
      const [own, ...earlier] = (await queued()).reverse()
      await installation.queues.obliterate('reversal')
      expect(await queued()).toEqual([])
      await until(async () => (await queued()).includes(own ?? ''), { what: 'the reversal' })
      for (const id of earlier) await until(async () => (await queued()).includes(id), { what: 'the one before' })
    })
    it('another request under the key of one that was answered 202 waits for its end, and cancels nothing', async () => {
      const later = { headers: { ...key('promised'), prefer: 'respond-async' } }
      expect((await caller.put(VISA, {}, later)).status).toBe(202)
      const reversals = async () => (await installation.queues.list('reversal', ['waiting'], 0, 99)).length
      const before = await reversals()
      const answer = await caller.put(VISA, {}, later)
      expect([answer.status, answer.body['reversal_status'], await reversals()]).toEqual([500, 'NONE', before])
      await installation.queues.obliterate('token-create')
      await rowsOf(installation, 'delete from tokenmill.operation where client_id = $1 and kind = $2', [
        installation.credentials.signingKey.clientId,
        'token-create',
      ])
    })
    it('another request under its key waits for the end of the first, which nobody knows', async () => {
      const answer = await caller.put(MASTERCARD, {}, { headers: key('late') })
      expect([answer.status, answer.body['reversal_status']]).toEqual([500, 'REQUIRED'])
    })
    it('beyond as many operations as may be under way it is 429 with Retry-After, quickly', async () => {
      const waiting = Array.from({ length: 3 }, () => caller.put(MASTERCARD))
      await until(() => caller.gateway.deps.requestReply.inFlight() === 3)
      const answer = await caller.put(MASTERCARD)
      // It was refused without waiting for them.
      expect(caller.gateway.deps.requestReply.inFlight()).toBe(3)
      expect([answer.status, answer.body['code'], answer.body['reversal_status']]).toEqual([429, 429, 'NONE'])
      expect(answer.headers.get('retry-after')).toMatch(/^\d+$/)
      expect(await caller.call('GET', `${CARD}/t${'0'.repeat(26)}`)).toMatchObject({ status: 404 })
      for (const answered of await Promise.all(waiting)) expect(answered.body['reversal_status']).toBe('REQUIRED')
      expect(caller.gateway.deps.requestReply.inFlight()).toBe(0)
    })
  })

  it('and once somebody works again, nothing of it has taken effect, and a repeat says so', async () => {
    const body = { token_scope: installation.scope, ...(await encrypted(VISA, installation.credentials)) }
    const late = await caller.call('PUT', CARD, { body, headers: key('undone') })
    expect(late.body['reversal_status']).toBe('REQUIRED')
    await installation.openWorkers({ roles: ['interactive'] })
    const repeat = async () => (await caller.call('PUT', CARD, { body, headers: key('undone') })).body
    // Until then the reversal is still due.
    const again = await until(async () => [await repeat()].find(said => said['reversal_status'] !== 'REQUIRED'))
    expect(again).toMatchObject({ code: 500, reversal_status: 'COMPLETED' })
    await until(async () => {
      const { waiting, active, delayed } = await installation.queues.depth('token-create')
      return waiting + active + delayed === 0
    })
    expect(await rowsOf(installation, 'select token_id from tokenmill.token')).toEqual([])
    const fresh = await caller.call('PUT', CARD, {
      body: { ...body, ...(await encrypted(VISA, installation.credentials)) },
      headers: key(randomUUID()),
    })
    expect(fresh.status).toBe(200)
  })
})
