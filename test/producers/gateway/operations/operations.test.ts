// Writes that are answered later: after a 202 the job is done once, and its stored envelope is erased.
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { receiptId } from '../../../../src/job/envelope/ids.ts'
import * as operations from '../../../../src/store/job/operations.ts'
import { describeOnRedis } from '../../../support/engines.ts'
import { type Installation, openInstallation } from '../../../support/installation.ts'
import { startScript } from '../../../support/process.ts'
import { until } from '../../../support/until.ts'
import { type Answer, basicOf, CARD, type Caller, encrypted, openGatewayFor } from '../bundle.ts'

const OPERATIONS = '/oidc/api/v2/operations'
const VISA = { cardNumber: '4111111111111111', expiryMonth: 12, expiryYear: 2034 }
const later = (key?: string) => ({
  prefer: 'respond-async',
  ...(key === undefined ? {} : { 'idempotency-key': key }),
})

describeOnRedis('a write that prefers to be answered later', engine => {
  let installation: Installation
  let caller: Caller
  beforeAll(async () => {
    installation = await openInstallation(engine)
    caller = await openGatewayFor(installation, { TOKENMILL_RESEND_SECONDS: '1' })
  })
  afterAll(async () => {
    await caller?.close()
    await installation?.close()
  })

  const query = async <R>(text: string, values: unknown[] = []) =>
    (await installation.vault.store.query<R>({ text, values })).rows
  const stored = async (id: string) =>
    (
      await query<{ state: string; jws: string | null }>(
        'select state, jws from tokenmill.operation where receipt_id = $1',
        [id],
      )
    )[0]
  const idOf = (answer: Answer) => answer.headers.get('location')?.split('/').at(-1) ?? ''
  const settled = (id: string) =>
    until(
      async () => {
        const { body } = await caller.call('GET', `${OPERATIONS}/${id}`)
        return body['status'] !== 'PENDING' && body
      },
      { what: `operation ${id}` },
    )

  let late: Record<string, unknown>

  describe('before any worker runs', () => {
    beforeAll(async () => {
      late = { token_scope: installation.scope, ...(await encrypted(VISA, installation.credentials)) }
    })

    it('is refused at once where its form is wrong, and nothing is stored', async () => {
      const answer = await caller.call('PUT', CARD, { headers: later(), body: { token_scope: 'x' } })
      expect(answer.status).toBe(400)
      // A card number in place of a token isn't stored, either.
      const mistaken = await caller.call('PATCH', `${CARD}/4111111111111111/suspend`, { headers: later() })
      expect([mistaken.status, Object.keys(mistaken.body['details'] ?? {})]).toEqual([404, ['params.id']])
      expect(await query('select from tokenmill.operation')).toEqual([])
    })

    it('an unknown operation, or no UUID, is not found', async () => {
      expect((await caller.call('GET', `${OPERATIONS}/${randomUUID()}`)).body).toMatchObject({
        code: 404,
        details: { 'params.id': { code: 'operation_not_found' } },
      })
      expect((await caller.call('GET', `${OPERATIONS}/x`)).status).toBe(400)
    })

    it('is counted as promised, and since when, until it is answered', async () => {
      const { store } = caller.gateway.deps
      const { rows } = await operations.measure(store)
      const before = Date.now()
      expect((await caller.put(VISA, {}, { headers: later('counted') })).status).toBe(202)
      const after = await operations.measure(store)
      expect(after.rows).toBe(rows + 1)
      expect(after.oldest).toBeGreaterThan(before - 60_000)
    })

    it('is answered 202 with its place, is pending, and keeps its envelope with the card as ciphertext', async () => {
      const answer = await caller.put(VISA, {}, { headers: later('first') })
      expect(answer.status).toBe(202)
      expect(answer.headers.get('retry-after')).toBe('1')
      expect(answer.headers.get('preference-applied')).toBe('respond-async')
      const id = receiptId(installation.credentials.signingKey.clientId, 'first')
      expect(answer.headers.get('location')).toBe(`${OPERATIONS}/${id}`)
      expect((await caller.call('GET', `${OPERATIONS}/${id}`)).body).toMatchObject({
        receipt_id: id,
        status: 'PENDING',
      })
      const { jws } = (await stored(id)) ?? {}
      const payload = Buffer.from(jws?.split('.')[1] ?? '', 'base64url').toString('utf8')
      expect(JSON.parse(payload)).toMatchObject({ iss: 'gateway', kind: 'token-create', jti: 'first' })
      expect(payload).not.toContain('4111111111111111')
    })

    it('under a key that was used for the same request is the same operation', async () => {
      const body = { token_scope: installation.scope, ...(await encrypted(VISA, installation.credentials)) }
      const one = await caller.call('PUT', CARD, { headers: later('twice'), body })
      const again = await caller.call('PUT', CARD, { headers: later('twice'), body })
      expect([one.status, again.status]).toEqual([202, 202])
      expect(again.headers.get('location')).toBe(one.headers.get('location'))
    })

    it('is another client’s affair, and not found by this one', async () => {
      const { clientFile } = await installation.addClient('second')
      const authorization = await basicOf(clientFile)
      const id = receiptId(installation.credentials.signingKey.clientId, 'first')
      expect((await caller.call('GET', `${OPERATIONS}/${id}`, { authorization })).status).toBe(404)
      const reports = await installation.addClient('third', { roles: ['REPORT_READ'] })
      expect(
        (await caller.call('GET', `${OPERATIONS}/${id}`, { authorization: await basicOf(reports.clientFile) })).status,
      ).toBe(404)
    })

    it('whose time is over without an answer has failed, and its envelope is erased', async () => {
      const id = idOf(await caller.call('PUT', CARD, { headers: later('late'), body: late }))
      await query(
        `update tokenmill.operation set expires_at = now() - interval '2 minutes', due_at = now() where receipt_id = $1`,
        [id],
      )
      expect(await settled(id)).toMatchObject({
        status: 'FAILED',
        code: 400,
        error: { code: 400, details: { 'body.exp': { code: 'envelope_expired' } } },
      })
      expect(await stored(id)).toEqual({ state: 'EXPIRED', jws: null })
      await installation.queues.obliterate('token-create')
    })
  })

  describe('with workers', () => {
    beforeAll(async () => {
      await installation.openWorkers({ roles: ['interactive'] })
    })

    it('that the queue lost is queued again, and done once', async () => {
      // The queue was emptied above.
      const id = receiptId(installation.credentials.signingKey.clientId, 'first')
      await query('update tokenmill.operation set due_at = now() where receipt_id = $1', [id])
      const done = await settled(id)
      expect(done).toMatchObject({ status: 'SUCCEEDED', code: 200, revision: 1, record: { last_four: '1111' } })
      expect(await query('select from tokenmill.receipt where receipt_id = $1', [id])).toHaveLength(1)
    })

    it('is answered as at once, and its envelope is erased when its receipt is there', async () => {
      const created = await settled(
        idOf(await caller.put({ ...VISA, cardNumber: '5555555555554444' }, {}, { headers: later() })),
      )
      const token = (created['record'] as { reuse_token: string }).reuse_token
      expect(created).toMatchObject({ status: 'SUCCEEDED', record: { bin: '55555555', token_status: 'ACTIVE' } })
      const patched = await caller.call('PATCH', `${CARD}/${token}`, {
        headers: later(),
        body: { card_holder_name: 'ANNA' },
      })
      expect(await settled(idOf(patched))).toMatchObject({ code: 200, record: { card_holder_name: 'ANNA' } })
      const suspended = await caller.call('PATCH', `${CARD}/${token}/suspend`, { headers: later() })
      expect(await settled(idOf(suspended))).toMatchObject({ code: 204 })
      const gone = await caller.call('PATCH', `${CARD}/t${'0'.repeat(26)}`, { headers: later(), body: {} })
      const failed = await settled(idOf(gone))
      expect(failed).toMatchObject({
        status: 'FAILED',
        code: 404,
        error: { details: { 'params.id': { code: 'token_not_found' } } },
      })
      expect((await stored(idOf(gone)))?.jws).toBeNull()
    })

    it('that had failed without a receipt is taken on anew, at the same place', async () => {
      const again = await caller.call('PUT', CARD, { headers: later('late'), body: late })
      expect(await settled(idOf(again))).toMatchObject({ status: 'SUCCEEDED', record: { last_four: '1111' } })
    })

    it('without anybody asking, the answer alone erases the envelope', async () => {
      const id = idOf(await caller.put(VISA, {}, { headers: later() }))
      expect(await until(async () => (await stored(id))?.jws === null && stored(id))).toMatchObject({
        state: 'ANSWERED',
      })
    })

    it('under a key that was used at once for another request is refused before it is stored', async () => {
      expect((await caller.put(VISA, {}, { headers: { 'idempotency-key': 'mixed' } })).status).toBe(200)
      const other = { ...VISA, cardNumber: '5555555555554444' }
      const answer = await caller.put(other, {}, { headers: later('mixed') })
      const details = { 'params.idempotency-key': { code: 'jti_reused' } }
      expect(answer).toMatchObject({ status: 400, body: { details } })
      expect(answer.headers.get('location')).toBeNull()
    })

    it('accepted by a gateway that is killed before it could queue it, is done once by the next one', async () => {
      const body = {
        token_scope: installation.scope,
        ...(await encrypted({ ...VISA, cardNumber: '6011111111111117' }, installation.credentials)),
      }
      const child = startScript('test/producers/gateway/deaf-gateway.ts', [], {
        env: { ...installation.env, TOKENMILL_HTTP_PORT: '0' },
      })
      const [, port] = await child.line(/port (\d+)/)
      const answer = await fetch(`http://127.0.0.1:${port}${CARD}`, {
        method: 'PUT',
        headers: { ...later('orphan'), authorization: caller.authorization, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      })
      expect(answer.status).toBe(202)
      await child.kill9()
      const id = receiptId(installation.credentials.signingKey.clientId, 'orphan')
      expect(await settled(id)).toMatchObject({ status: 'SUCCEEDED', record: { last_four: '1117' } })
      expect(await query('select from tokenmill.receipt where receipt_id = $1', [id])).toHaveLength(1)
      expect(await query(`select from tokenmill.token where last_four = '1117'`)).toHaveLength(1)
    })

    it('of a hundred at once, each is done once', async () => {
      const ids = await Promise.all(
        Array.from({ length: 100 }, async (_, n) => {
          const answer = await caller.call('PATCH', `${CARD}/t${'0'.repeat(26)}`, {
            headers: later(`many-${n}`),
            body: { expiry_month: 1 + (n % 12) },
          })
          return idOf(answer)
        }),
      )
      for (const id of ids) expect(await settled(id)).toMatchObject({ code: 404, revision: 1 })
      expect(await query(`select from tokenmill.receipt where jti like 'many-%'`)).toHaveLength(100)
    })
  })
})
