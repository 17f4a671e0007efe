// A gateway that is older than its workers passes on codes that it doesn't know. The workers here answer as those of a
// later release could.
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { openInstallationKey } from '../../../../cli/open/installation-key.ts'
import { type InstallationKey, readResult, sealResult } from '../../../../src/job/answer/result.ts'
import { resultsQueue } from '../../../../src/job/catalogue.ts'
import { count } from '../../../../src/job/chunk-outcomes.ts'
import { envelopeDigest } from '../../../../src/job/envelope/digest.ts'
import { type Claims, peek } from '../../../../src/job/envelope/envelope.ts'
import { receiptId, resultId } from '../../../../src/job/envelope/ids.ts'
import { noCounts } from '../../../../src/job/outcome.ts'
import type { Worker } from '../../../../src/queue/engine.ts'
import * as outbox from '../../../../src/store/job/outbox.ts'
import { describeStore } from '../../../support/engines.ts'
import { type Installation, openInstallation } from '../../../support/installation.ts'
import { testPan } from '../../../support/test-pan.ts'
import { until } from '../../../support/until.ts'
import { CARD, type Caller, openGatewayFor } from '../bundle.ts'

const NEWER = { message: 'This card is told of by a release to come.', code: 'card_to_come' }
const RECORD = { line: 2, outcome: 'REJECTED', code: 409 }
const PROBLEM = { code: 409, message: 'A conflict.', timestamp: 1, reversal_status: 'NONE' }
const UNSURE = { status: 400, reversalStatus: 'REQUIRED' }
/** What this release says of a reason that it doesn't know. */
const TOLD = { code: NEWER.code, message: expect.stringMatching(/^This reason is not known here/) }
const BATCHES = '/oidc/api/v2/batches'
const CSV = { 'content-type': 'text/csv' }

it('a stored result of a newer worker is read: what this release does not know passes, what it needs is checked', () => {
  const problem = {
    code: 409,
    message: 'A conflict.',
    timestamp: 1,
    reversal_status: 'NONE',
    severity: 'low',
    details: { 'body.id': { ...NEWER, hint: 'x' }, 'body.x': 'only a text' },
  }
  const record = { line: 2, outcome: 'REJECTED', code: 409, failed_facet: 'network', weight: 1 }
  const result = {
    v: 2,
    type: 'result',
    kind: 'token-touch',
    code: 409,
    revision: 1,
    completed_at: '2030-01-31T09:30:00.000Z',
    error: problem,
    records: [record],
  }
  expect(readResult(JSON.stringify(result))).toEqual({
    ...result,
    error: { status: 400, fields: [{ field: 'body.id', reason: NEWER.code }], reversalStatus: 'NONE' },
    records: [{ ...record, failed_facet: undefined }],
  })
  for (const wrong of [{ code: '409' }, { records: [{ line: 2 }] }])
    expect(() => readResult(JSON.stringify({ ...result, ...wrong }))).toThrow()
})

it.each([
  ['an unknown outcome', { records: [{ ...RECORD, outcome: 'POSTPONED' }] }, { records: [{ outcome: 'POSTPONED' }] }],
  ['a reference that is null', { records: [{ ...RECORD, reference: null }] }, { records: [RECORD] }],
  ['an unknown reversal status', { error: { ...PROBLEM, reversal_status: 'PARTLY' } }, { error: UNSURE }],
  ['a problem without a reversal status', { error: { ...PROBLEM, reversal_status: undefined } }, { error: UNSURE }],
  [
    'a problem without a timestamp',
    { error: { ...PROBLEM, timestamp: undefined } },
    { error: { status: 400, reversalStatus: 'NONE' } },
  ],
  ['details that are a list', { error: { ...PROBLEM, details: [] } }, { error: { fields: [] } }],
  ['an error that is a text', { error: 'no' }, { error: { status: 500, reversalStatus: 'REQUIRED' } }],
  ['no time', { completed_at: undefined }, {}],
  ['no revision', { revision: undefined }, {}],
])('a stored result with %s is read', (_, told, read) => {
  const result = { code: 409, revision: 1, completed_at: '2030-01-31T09:30:00.000Z', ...told }
  expect(readResult(JSON.stringify(result))).toMatchObject({ code: 409, ...read })
})

it('an outcome that this release does not know is counted as none of those that it knows', () => {
  const counts = count([{ outcome: 'CREATED' }, { outcome: 'POSTPONED' }, { outcome: 'CREATED' }])
  expect(counts).toEqual({ ...noCounts(), CREATED: 2 })
})

describeStore('a gateway older than its workers', engine => {
  let installation: Installation
  let caller: Caller
  let key: InstallationKey
  beforeAll(async () => {
    installation = await openInstallation(engine)
    caller = await openGatewayFor(installation, { TOKENMILL_RESEND_SECONDS: '1' })
    key = await openInstallationKey(installation.vault.store, installation.vault.halves)
  })
  afterAll(async () => {
    await caller?.close()
    await installation?.close()
  })

  const query = async <R>(text: string, values: unknown[] = []) =>
    (await installation.vault.store.query<R>({ text, values })).rows

  /** The answer over HTTP to a suspension that a newer worker refuses with these details. */
  async function refusedWith(code: number, details: Record<string, unknown>, reversal_status = 'NONE') {
    const worker: Worker = installation.queues.work(
      'token-lifecycle',
      async job => {
        const { jws } = job.data as { jws: string }
        const peeked = peek(jws)
        if (typeof peeked === 'string') throw new Error(peeked)
        const claims = peeked.payload as Claims
        const id = receiptId(claims.client_id ?? claims.iss, claims.jti)
        const now = new Date().toISOString()
        const error = { code, message: 'Whatever a release to come says.', details, timestamp: 1, reversal_status }
        const body = JSON.stringify({
          v: 1,
          type: 'result',
          result_id: resultId(id, 1),
          receipt_id: id,
          revision: 1,
          kind: claims.kind,
          jti: claims.jti,
          envelope: envelopeDigest(jws).toString('base64url'),
          status: 'FAILED',
          code,
          error,
          attempt: 1,
          accepted_at: now,
          completed_at: now,
        })
        const about = { clientId: claims.iss, resultId: resultId(id, 1), revision: 1 }
        const data = sealResult(body, about, key)
        await installation.queues.add(resultsQueue(claims.iss, claims.reply_to), { id: `r_${randomUUID()}`, data })
        return { done: true }
      },
      { concurrency: 1 },
    )
    try {
      await worker.ready
      return await caller.call('PATCH', `${CARD}/t${'0'.repeat(26)}/suspend`)
    } finally {
      await worker.close(2_000)
    }
  }

  it('passes on a reason that it does not know, with its status', async () => {
    const answer = await refusedWith(403, { 'body.id': NEWER })
    expect(answer).toMatchObject({
      status: 403,
      body: {
        code: 403,
        message: 'Your roles do not permit this query.',
        details: { 'params.id': TOLD },
        reversal_status: 'NONE',
      },
    })
  })

  it('takes a status that it does not know for the first of its class (RFC 9110 15)', async () => {
    const [refused, failed] = [await refusedWith(409, { 'body.id': NEWER }), await refusedWith(503, {}, 'REQUIRED')]
    expect(refused).toMatchObject({ status: 400, body: { code: 400, details: { 'params.id': TOLD } } })
    expect(failed).toMatchObject({ status: 500, body: { code: 500, reversal_status: 'REQUIRED' } })
  })

  it('passes on nothing that is no field or no word, and no text', async () => {
    const answer = await refusedWith(400, {
      'body.id': NEWER,
      'body.one': { message: 'It was 4111111111111111.', code: 'pan_luhn' },
      'body.two': { message: 'A text.', code: 'No word' },
      'body.three': { message: 'A text.', code: 5 },
      'body.four': null,
      'elsewhere.seven': NEWER,
      'body.a b': NEWER,
    })
    expect(answer).toMatchObject({ status: 400 })
    expect(answer.body['details']).toEqual({
      'params.id': TOLD,
      'body.one': { message: 'The card number fails the Luhn check.', code: 'pan_luhn' },
    })
  })

  it('ends an operation whose answer it cannot read, and goes on with the others', async () => {
    const places = await Promise.all(
      ['1', '2'].map(async digit => {
        const path = `${CARD}/t${digit.repeat(26)}/suspend`
        return (
          (await caller.call('PATCH', path, { headers: { prefer: 'respond-async' } })).headers.get('location') ?? ''
        )
      }),
    )
    expect(places).not.toContain('')
    const { clientId } = installation.credentials.signingKey
    for (const [index, place] of places.entries()) {
      const id = place.split('/').at(-1) ?? ''
      const body = JSON.stringify(index === 0 ? { code: 'a word' } : { code: 409, revision: 1, error: PROBLEM })
      const [operation] = await query<{ jws: string }>('select jws from tokenmill.operation where receipt_id = $1', [
        id,
      ])
      await outbox.insert(installation.vault.store, installation.vault.ring, {
        clientId,
        replyTo: null,
        resultId: resultId(id, 1),
        receiptId: id,
        revision: 1,
        body,
        envelopeDigest: envelopeDigest(operation?.jws ?? ''),
      })
    }
    // No caller asks for these operations, so the sweep ends them.
    const states = () =>
      query<{ state: string; code: number }>(
        `select state, (failure->>'status')::int as code from tokenmill.operation
where receipt_id = any($1::uuid[]) and state = 'REFUSED' order by code`,
        [places.map(place => place.split('/').at(-1))],
      )
    await until(async () => (await states()).length === 2)
    expect(await states()).toMatchObject([{ code: 400 }, { code: 500 }])
    await installation.queues.obliterate('token-lifecycle')
  })

  it('tells the end of an operation whose receipt holds such a reason, by the status of the receipt', async () => {
    await installation.openWorkers({ roles: ['interactive'] })
    const path = `${CARD}/t${'0'.repeat(26)}/suspend`
    const made = await caller.call('PATCH', path, { headers: { prefer: 'respond-async' } })
    const place = made.headers.get('location') ?? ''
    const ended = () =>
      until(async () => {
        const { body, status } = await caller.call('GET', place)
        return (status !== 200 || body['status'] !== 'PENDING') && body
      })
    await ended()
    const refusal = JSON.stringify([{ field: 'body.id', reason: NEWER.code }])
    const id = place.split('/').at(-1)
    await query('update tokenmill.receipt set code = 403, refusal = $2 where receipt_id = $1', [id, refusal])
    expect(await ended()).toMatchObject({
      status: 'FAILED',
      code: 403,
      error: { code: 403, details: { 'params.id': TOLD } },
    })
  })

  it('acknowledges a result of a kind that it does not know', async () => {
    const id = randomUUID()
    const { clientId } = caller.gateway.deps.signingKey
    const told = { v: 1, type: 'result', result_id: id, receipt_id: id, kind: 'token-to-come', code: 200 }
    const data = sealResult(JSON.stringify(told), { clientId, resultId: id, revision: 1 }, key)
    const queue = resultsQueue(clientId)
    await installation.queues.add(queue, { id: `r_${id}`, data })
    await until(async () => {
      const { waiting, delayed, active } = await installation.queues.depth(queue)
      return waiting + delayed + active === 0
    })
  })

  it('tells the results of a batch in which records or whole chunks have such reasons', async () => {
    const rows = `reference,card_number,expiry\nr-1,${testPan(1)},12/34\n`
    const start = async (id: string) => {
      const search = `?token_scope=${installation.scope}&batch_id=${id}`
      expect((await caller.call('POST', `${BATCHES}${search}`, { headers: CSV, body: rows })).status).toBe(202)
    }
    const lineOf = async (id: string) => {
      await until(async () => (await caller.call('GET', `${BATCHES}/${id}`)).body['finished'] === true)
      return (await caller.call('GET', `${BATCHES}/${id}/results`)).text.trimEnd().split('\n')[1]
    }
    await start('chunk')
    const sent = () =>
      query<{ receipt_id: string }>(`select receipt_id from tokenmill.intake_chunk where state = 'SENT'`)
    const [chunk] = await until(async () => {
      const found = await sent()
      return found.length > 0 && found
    })
    const receipt = chunk?.receipt_id ?? ''
    const { clientId } = installation.credentials.signingKey
    const error = { code: 403, message: '', details: { 'body.batch_id': NEWER }, timestamp: 1, reversal_status: 'NONE' }
    await outbox.insert(installation.vault.store, installation.vault.ring, {
      clientId,
      replyTo: null,
      resultId: resultId(receipt, 1),
      receiptId: receipt,
      revision: 1,
      body: JSON.stringify({ kind: 'token-batch', code: 403, error }),
    })
    expect(await lineOf('chunk')).toBe(`2,r-1,REJECTED,403,,,,,,,,${NEWER.code}`)

    await installation.queues.obliterate('token-batch')
    await start('unread')
    await start('beside')
    const both = await until(async () => {
      const found = await sent()
      return found.length === 2 && found
    })
    const [unread, beside] = both.map(row => row.receipt_id)
    const told = (id = '', body: string) =>
      outbox.insert(installation.vault.store, installation.vault.ring, {
        clientId,
        replyTo: null,
        resultId: resultId(id, 1),
        receiptId: id,
        revision: 1,
        body,
      })
    await told(unread, JSON.stringify({ code: 'a word' }))
    await told(beside, JSON.stringify({ code: 200, records: [{ ...RECORD, reference: null, outcome: 'POSTPONED' }] }))
    const ends = [await lineOf('unread'), await lineOf('beside')].sort()
    expect(ends).toEqual(['2,,POSTPONED,409,,,,,,,,', '2,r-1,FAILED,500,,,,,,,,internal'])
    await installation.queues.obliterate('token-batch')
    await installation.openWorkers({ roles: ['bulk'] })
    await start('record')
    await lineOf('record')
    const rejected = JSON.stringify([[2, 4, 0, 'r-1', NEWER.code, 'body.card']])
    await query(
      `update tokenmill.receipt set outcomes = $1 where receipt_id = (select receipt_id from tokenmill.intake_chunk
  where intake_no = (select intake_no from tokenmill.intake where batch_id = 'record'))`,
      [rejected],
    )
    expect(await lineOf('record')).toBe(`2,r-1,REJECTED,400,,,,,,,,${NEWER.code}`)
  })
})
