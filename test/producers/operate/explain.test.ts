// `explain` for a job, by each name that it accepts.

import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Client } from '../../../producers/client.ts'
import { type Explanation, explain, type Question } from '../../../producers/operate/explain.ts'
import { type WholeSources, wholeReader } from '../../../producers/operate/whole-reader.ts'
import { tokenBatch } from '../../../producers/token-batch.ts'
import { resultsQueue } from '../../../src/job/catalogue.ts'
import { CATALOGUE } from '../../../src/job/composition.ts'
import { moveToFailed } from '../../../src/queue/failed.ts'
import { cli } from '../../cli/command-bench.ts'
import { describeEngines } from '../../support/engines.ts'
import { ENTITY, type Installation, openInstallation } from '../../support/installation.ts'
import { until } from '../../support/until.ts'
import type { OpenedWorkers } from '../../support/workers.ts'

const CARD = { cardNumber: '4111111111111111', expiryMonth: 12, expiryYear: 2030, cardholderName: 'ANNA MEYER' }

describeEngines('explain', engine => {
  let installation: Installation
  let workers: OpenedWorkers
  let client: Client
  let batchId: string
  beforeAll(async () => {
    installation = await openInstallation(engine)
    workers = await installation.openWorkers()
    client = await installation.connect()
    batchId = await sendBatch()
  })
  afterAll(() => installation?.close())

  const ask = (what: string, more: Partial<Question> = {}): Promise<Explanation> =>
    explainWith(
      { what, ...more },
      {
        store: installation.vault.store,
        queues: installation.queues,
        catalogue: CATALOGUE,
        now: Date.now(),
      },
    )
  const explainWith = (question: Question, sources: WholeSources) =>
    explain(question, { ...sources, reader: wholeReader(sources) })

  /** Sends a batch of two chunks: a card, a row that is no card and another card; then one card. */
  async function sendBatch(): Promise<string> {
    const { credentials, scope } = installation
    const id = randomUUID()
    const captureKey = credentials.captureKeys.jwe
    if (!captureKey) throw new Error('these credentials hold no JWE key')
    const plan = { batchId: id, recordKind: 'token-create' as const, tokenScope: scope, chunkRecords: 3 }
    const accepted = { ...plan, acceptedAt: Math.floor(Date.now() / 1000), captureKey }
    const line = (number: number, pan: string) =>
      JSON.stringify({
        line: number,
        request: { card: { cardNumber: pan, expiryMonth: 12, expiryYear: 2030 } },
        reference: `order-${number}`,
      })
    const chunks = [
      [line(2, '5555555555554444'), line(3, '4111111111111112'), line(5, '4012888888881881')],
      [line(9, '4000000000000002')],
    ]
    for (const [number, lines] of chunks.entries()) {
      const asked = await tokenBatch(client.clientId, accepted, { lines, number })
      if ('refused' in asked) throw new Error(`refused: ${asked.reason}`)
      const { request, jti, block } = asked
      await client.call('token-batch', request, { jti, block })
    }
    return id
  }

  const create = async (more: Parameters<Client['call']>[2] = {}, card = CARD) =>
    client.call('token-create', { token_scope: installation.scope, ...(await client.encryptCard(card)) }, more)

  it('finds a job by jti, receipt, reference and token alike', async () => {
    const made = await create({ jti: 'order-4711-a', reference: 'customer 17' })
    const token = String(made.record?.['reuse_token'])
    const byJti = await ask('order-4711-a')
    const [job] = byJti.jobs
    expect(byJti).toMatchObject({ as: 'jti', notes: [] })
    expect(job).toMatchObject({
      kind: 'token-create',
      client: { id: client.clientId },
      jti: 'order-4711-a',
      reference: 'customer 17',
      attempts: 1,
      decided: { status: 'SUCCEEDED', code: 200, outcome: 'CREATED', reasons: [], token },
    })
    expect((await ask(job?.receipt_id ?? '')).as).toBe('receipt')
    expect(await ask('customer 17')).toMatchObject({ as: 'reference', jobs: [{ jti: 'order-4711-a' }] })
    const byToken = await ask(token)
    expect(byToken).toMatchObject({ as: 'token', token: { token, status: 'ACTIVE' }, jobs: [{ jti: 'order-4711-a' }] })
    expect(await ask('order-4711-a', { client: { clientId: 'somebodyelse', name: 'x' } })).toMatchObject({
      as: 'nothing',
    })
  })

  it('says why a job was refused, and what the sender can do', async () => {
    await create({ jti: 'refused-1' }, { ...CARD, expiryMonth: 13 })
    const [job] = (await ask('refused-1')).jobs
    expect(job?.decided?.reasons ?? job?.told[0]?.says?.reasons).toMatchObject([
      { field: expect.stringContaining('body'), reason: expect.any(String), text: expect.any(String) },
    ])
    expect(job?.next.join(' ')).toContain('The sender corrects')
  })

  it('finds a line of a batch by its number and by its reference, in any chunk', async () => {
    expect(await ask('3', { batch: batchId })).toMatchObject({
      as: 'line',
      record: { batch: batchId, chunk: 0, line: 3, outcome: 'REJECTED', reason: 'pan_luhn', reference: 'order-3' },
      jobs: [{ kind: 'token-batch', decided: { counts: { CREATED: 2, REJECTED: 1 } } }],
    })
    expect(await ask('9', { batch: batchId })).toMatchObject({ record: { chunk: 1, line: 9, outcome: 'CREATED' } })
    expect(await ask('order-5', { batch: batchId })).toMatchObject({ record: { line: 5, outcome: 'CREATED' } })
    expect(await ask('order-9')).toMatchObject({ as: 'line', record: { batch: batchId, line: 9 } })
  })

  it('leaves a receipt of the entity that the envelope claims', async () => {
    const { rows } = await installation.vault.store.query<{ entity: string | null; kinds: number }>({
      text: 'select entity_id as entity, count(distinct kind) as kinds from tokenmill.receipt group by 1',
    })
    expect(rows).toEqual([{ entity: ENTITY, kinds: 2 }])
  })

  it('says that a line has no answer yet, and how far it looked for a name that nobody used', async () => {
    expect((await ask('4', { batch: batchId })).notes).toEqual([expect.stringContaining('was answered so far holds 4')])
    expect((await ask('4', { batch: 'no-such-batch' })).notes).toEqual(['There is no batch no-such-batch.'])
    const unknown = await ask('nobody-used-this')
    expect(unknown).toMatchObject({ as: 'nothing', jobs: [] })
    expect(unknown.notes).toEqual([expect.stringMatching(/^Nothing is known by that name; 1 of 1 batches/)])
  })

  it('says whether a result was read', async () => {
    await create({ jti: 'read-1' }, { ...CARD, cardNumber: '4242424242424242' })
    await until(async () => (await ask('read-1')).jobs[0]?.told[0]?.state === 'read')
    await client.close()
    const silent = await installation.connect({ replyTo: 'other' })
    await silent.submit(
      'token-lifecycle',
      { id: 't00000000000000000000000000', action: 'SUSPEND' },
      { jti: 'unread-1' },
    )
    await silent.close()
    await until(async () => (await ask('unread-1')).jobs[0]?.told[0]?.state === 'unread')
    expect((await ask('unread-1')).jobs[0]?.next.join(' ')).toContain('has to read')
    const { queues } = installation
    const queue = resultsQueue(silent.clientId, 'other')
    const [single] = await queues.list(queue, ['waiting'], 0, 0)
    const { body } = (single?.data ?? {}) as { body?: string }
    await queues.add(queue, { id: 's_set', data: { body: `[{"result_id":"another"},${body}]`, jws: '' } })
    await queues.remove(queue, single?.id ?? '')
    expect((await ask('unread-1')).jobs[0]?.told[0]?.state).toBe('unread')
    await queues.remove(queue, 's_set')
    expect((await ask('unread-1')).jobs[0]?.told[0]?.state).toBe('read')
    client = await installation.connect()
  })

  it('says that a job waits where nobody works it, and that one which failed may be sent again', async () => {
    await workers.close()
    await client.submit('token-lifecycle', { id: 't00000000000000000000000000', action: 'SUSPEND' }, { jti: 'waits-1' })
    const [job] = (await ask('waits-1')).jobs
    expect(job).toMatchObject({ queued: { queue: 'token-lifecycle', state: 'waiting' }, told: [] })
    expect(job?.decided).toBeUndefined()
    const copied = await installation.queues.list('token-lifecycle', ['waiting'], 0, 0)
    const { id = '', data } = copied[0] ?? {}
    const { jws } = data as { jws: string }
    await installation.queues.remove('token-lifecycle', id)
    const failure = { code: 'contention', attempt: 8, failedAt: Date.now() }
    const copy = { ...failure, jws, kind: 'token-lifecycle', jobId: id, clientId: client.clientId, jti: 'waits-1' }
    const failedId = await moveToFailed(installation.queues, 'token-lifecycle', { id, enqueuedAt: 1 }, copy)
    expect((await ask('waits-1')).jobs).toMatchObject([
      { failed: { id: failedId, code: 'contention', can_be_retried: true }, next: [expect.stringContaining(failedId)] },
    ])
  })

  it('finds a job of the failed set by its id there and by its reference', async () => {
    await client.submit(
      'token-lifecycle',
      { id: 't00000000000000000000000000', action: 'SUSPEND' },
      { jti: 'fails-1', reference: 'customer 18' },
    )
    const waiting = await installation.queues.list('token-lifecycle', ['waiting'], 0, 10)
    const { id = '', data } = waiting.at(-1) ?? {}
    const { jws } = data as { jws: string }
    await installation.queues.remove('token-lifecycle', id)
    const failure = { code: 'store_busy', attempt: 8, failedAt: Date.now() }
    const names = { clientId: client.clientId, jti: 'fails-1', reference: 'customer 18' }
    const copy = { ...failure, ...names, jws, kind: 'token-lifecycle', jobId: id }
    const failedId = await moveToFailed(installation.queues, 'token-lifecycle', { id, enqueuedAt: 2 }, copy)
    for (const what of [failedId, 'customer 18'])
      expect(await ask(what)).toMatchObject({
        as: 'failed',
        jobs: [{ jti: 'fails-1', failed: { id: failedId, code: 'store_busy' } }],
        notes: [`It failed for good (store_busy): tokenmill failed show ${failedId}`],
      })
  })

  it('says the state of a batch, and of one that stopped where a line has no answer', async () => {
    const { store } = installation.vault
    const next = `tokenmill batch show ${batchId}`
    expect(await ask(batchId)).toMatchObject({ as: 'batch', batches: [{ batch: batchId, next }], jobs: [] })
    await store.query({
      text: `update tokenmill.batch set cancelled_at = now() where batch_id = $1`,
      values: [batchId],
    })
    expect(await ask(batchId)).toMatchObject({ batches: [{ state: 'CANCELLED' }] })
    expect((await ask('4', { batch: batchId })).notes).toContain(`The batch is CANCELLED: ${next}`)
    const said = await cli(['explain', batchId], { env: installation.env })
    expect(said).toMatchObject({ status: 0, stdout: expect.stringContaining(next) })
  })

  it('is a command that prints words or JSON, and ends 1 where nothing is known', async () => {
    const { env } = installation
    const said = await cli(['explain', batchId, '3'], { env })
    expect(said.status).toBe(0)
    expect(said.stdout).toContain(`record     line 3 of ${batchId} (chunk 0)`)
    expect(said.stdout).toContain('pan_luhn')
    expect(said.stdout).not.toContain('4111111111111112')
    expect((await cli(['explain', batchId, '3', '--json'], { env })).json<Explanation>().record?.line).toBe(3)
    expect((await cli(['explain', 'nobody-used-this'], { env })).status).toBe(1)
  })
})
