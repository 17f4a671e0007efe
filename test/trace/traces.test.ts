// Traces as a collector gets them: of a PUT through gateway and worker to its answer, of a chunk with its link to the
// batch, and of a report. No byte of them holds card data.
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Client } from '../../producers/client.ts'
import { tokenBatch } from '../../producers/token-batch.ts'
import * as batchList from '../../src/store/batch/batch-list.ts'
import { WHOLE_BATCH } from '../../src/store/batch/batch-row.ts'
import { ALL } from '../../src/store/sight.ts'
import { batchContext } from '../../src/trace/context.ts'
import { CARD as CARD_PATH, type Caller, encrypted, openGatewayFor } from '../producers/gateway/bundle.ts'
import { describeOnRedis } from '../support/engines.ts'
import { ENTITY, type Installation, openInstallation } from '../support/installation.ts'
import { until } from '../support/until.ts'
import { openReceiver, type ReceivedSpan, type Receiver } from './receiver.ts'

const CARD = { cardNumber: '4111111111111111', expiryMonth: 12, expiryYear: 2030, cardHolderName: 'Canary Holder' }
const OTHER = '5555555555554444'
const REFERENCE = 'canary-reference'

describeOnRedis('traces', engine => {
  let receiver: Receiver
  let installation: Installation
  let caller: Caller
  beforeAll(async () => {
    receiver = await openReceiver()
    installation = await openInstallation(engine, {
      OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
      OTEL_EXPORTER_OTLP_HEADERS: 'x-api-key=secret%20key',
      OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test',
    })
    await installation.startWorkers()
    caller = await openGatewayFor(installation)
  })
  afterAll(async () => {
    await caller?.close()
    await installation?.close()
    await receiver?.close()
  })

  const inTrace = (traceId: string) => receiver.spans.filter(span => span.traceId === traceId)
  const named = (traceId: string, name: string) =>
    receiver.span(`${name} in ${traceId}`, span => span.traceId === traceId && span.name === name)
  async function chain(leaf: ReceivedSpan): Promise<string[]> {
    const names = [leaf.name]
    for (let span = leaf; span.parentId !== ''; ) {
      const { parentId, traceId } = span
      const parent = inTrace(traceId).find(({ spanId }) => spanId === parentId)
      if (!parent) return [...names, '…']
      names.push(parent.name)
      span = parent
    }
    return names
  }

  it('show a PUT as one, from the request over the queue to the answer, in the trace of its caller', async () => {
    const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'
    // The caller's flag says that the trace isn't recorded, but the gateway decides that itself.
    const headers = { traceparent: `00-${traceId}-00f067aa0ba902b7-00` }
    const answer = await caller.put(CARD, {}, { headers })
    expect(answer.status).toBe(200)
    const publish = await named(traceId, 'publish')
    for (const name of ['remember', 'job', 'await worker', 'PUT /oidc/api/v2/card']) await named(traceId, name)
    expect(await chain(publish)).toEqual(['publish', 'remember', 'job', 'await worker', 'PUT /oidc/api/v2/card', '…'])
    const request = await named(traceId, 'PUT /oidc/api/v2/card')
    expect(request).toMatchObject({ kind: 2, parentId: '00f067aa0ba902b7', status: 0, events: 0 })
    expect(request.attributes).toEqual({
      'http.request.method': 'PUT',
      'http.route': '/oidc/api/v2/card',
      'http.response.status_code': 200,
    })
    expect(request.resource).toMatchObject({
      'service.name': 'tokenmill',
      'service.role': 'gateway',
      'deployment.environment.name': 'test',
    })
    const job = await named(traceId, 'job')
    expect(job.resource).toMatchObject({ 'service.role': 'worker-interactive' })
    expect(job.attributes).toMatchObject({
      'job.kind': 'token-create',
      'job.outcome': 'SUCCEEDED',
      'job.attempt': 1,
    })
    const names = new Set(inTrace(traceId).map(({ name }) => name))
    for (const step of ['prepare', 'decide', 'remember', 'publish']) expect(names).toContain(step)
    expect(receiver.headers[0]).toMatchObject({ 'x-api-key': 'secret key' })
  })

  /** Sends a batch of one chunk under this name. */
  async function sendChunk(client: Client, scope: string, batchId: string): Promise<void> {
    const captureKey = installation.credentials.captureKeys.jwe
    if (!captureKey) throw new Error('the test client has a JWE key')
    const plan = { batchId, recordKind: 'token-create' as const, tokenScope: scope, captureKey }
    const acceptedAt = Math.floor(Date.now() / 1000)
    const line = JSON.stringify({ line: 2, request: { card: { ...CARD, cardNumber: OTHER } }, reference: REFERENCE })
    const ask = await tokenBatch(client.clientId, { ...plan, acceptedAt }, { lines: [line], number: 0, isLast: true })
    if ('refused' in ask) throw new Error(`${ask.reason} ${ask.field}`)
    const { request, jti, block } = ask
    await client.call('token-batch', request, { jti, block })
  }

  it('show a chunk as one of its own, with a link to its batch, which has its span when it is finished', async () => {
    const client = await installation.connect({ replyTo: 'traces' })
    const batchId = randomUUID()
    await sendChunk(client, installation.scope, batchId)
    const job = await receiver.span('a chunk', ({ attributes }) => attributes['batch.id'] === batchId)
    const { traceId, spanId } = batchContext(client.clientId, batchId) ?? {}
    expect(job).toMatchObject({ name: 'job', parentId: '', links: [{ traceId, spanId }] })
    expect(job.traceId).not.toBe(traceId)
    expect(job.attributes).toMatchObject({ 'job.kind': 'token-batch', 'batch.chunk': 0, 'job.outcome': 'SUCCEEDED' })
    const publish = await named(job.traceId, 'publish')
    expect(await chain(publish)).toEqual(['publish', 'remember', 'job'])
    const batch = await named(traceId ?? '', 'batch')
    expect(batch).toMatchObject({ spanId, parentId: '', attributes: { 'batch.chunks': 1, 'batch.records': 1 } })
  })

  it('name no batch whose name could be a card number, by its hash neither', async () => {
    const numbered = await installation.addClient('numbered', { names: 'numeric' })
    const client = await installation.connect({ replyTo: 'numbers', credentials: numbered.credentials })
    const before = new Set(receiver.spans)
    await sendChunk(client, numbered.scope, OTHER)
    const { batch } = await until(async () => {
      const found = await batchList.list(
        ALL,
        installation.vault.store,
        { order: 'newest', limit: 100, now: Date.now() },
        WHOLE_BATCH,
      )
      const batch = found.find(({ batchId, rowsDone }) => batchId === OTHER && rowsDone > 0)
      return batch && { batch }
    })
    expect(batch.rowsDone).toBe(1)
    const isFresh = (span: ReceivedSpan) => !before.has(span)
    const job = await receiver.span(
      'the chunk',
      span => isFresh(span) && span.attributes['job.kind'] === 'token-batch' && span.name === 'job',
    )
    expect(job.links).toEqual([])
    for (const name of ['batch.id', 'batch.chunk', 'job.receipt']) expect(job.attributes).not.toHaveProperty(name)
    // Waits for the trace of a later batch: a trace of this batch would have arrived before it.
    const last = randomUUID()
    await sendChunk(client, numbered.scope, last)
    await receiver.span('a later batch', ({ name, attributes }) => name === 'batch' && attributes['batch.id'] === last)
    expect(receiver.spans.filter(span => isFresh(span) && span.name === 'batch')).toHaveLength(1)
  })

  it('show a report as one, with its making', async () => {
    const client = await installation.connect({ replyTo: 'tracesr' })
    const asked = await client.call('report', {
      report_type: 'MERCHANT_SETTLEMENT_REPORT',
      entity_id: ENTITY,
      parameters: { clearingDate: '2026-01-31' },
      mime_type: 'text/csv',
    })
    expect(asked.status).toBe('SUCCEEDED')
    const job = await receiver.span('a report', ({ attributes }) => attributes['job.kind'] === 'report')
    const make = await named(job.traceId, 'make report')
    expect(await chain(make)).toEqual(['make report', 'reach', 'job'])
    expect(make.attributes).toMatchObject({ 'report.type': 'MERCHANT_SETTLEMENT_REPORT' })
  })

  it('are begun by no stranger, whose requests would use up those of a second', async () => {
    const headers = { traceparent: `00-${'e'.repeat(32)}-00f067aa0ba902b7-01` }
    expect((await caller.call('PUT', CARD_PATH, { headers, body: {}, authorization: 'Bearer wrong' })).status).toBe(401)
    expect((await caller.call('GET', '/nowhere', { headers })).status).toBe(404)
    const last = `00-${'f'.repeat(32)}-00f067aa0ba902b7-01`
    await caller.put(CARD, {}, { headers: { traceparent: last } })
    await named('f'.repeat(32), 'PUT /oidc/api/v2/card')
    expect(inTrace('e'.repeat(32))).toEqual([])
  })

  it('end a request whose caller hung up while it waited for the answer', async () => {
    const { vault, queues } = installation
    await vault.store.transaction(async db => {
      // The lock keeps workers from answering.
      await db.query({ text: 'lock table tokenmill.token in access exclusive mode' })
      const hangUp = new AbortController()
      const answer = caller.put(CARD, {}, { signal: hangUp.signal })
      const failed = expect(answer).rejects.toThrow()
      await until(async () => (await queues.depth('token-create')).active > 0, { what: 'a job at work' })
      hangUp.abort()
      await failed
      const isHungUp = ({ name, attributes }: ReceivedSpan) =>
        name === 'PUT /oidc/api/v2/card' && attributes['error.type'] === 'hung_up'
      expect((await receiver.span('the request', isHungUp)).status).toBe(2)
    })
  })

  it('do not make a repeat another request', async () => {
    const body = { token_scope: installation.scope, ...(await encrypted(CARD, installation.credentials)) }
    const put = (trace: string) =>
      caller.call('PUT', CARD_PATH, {
        body,
        headers: { 'idempotency-key': 'same', traceparent: `00-${trace.repeat(32)}-00f067aa0ba902b7-01` },
      })
    const first = await put('a')
    expect(first.status).toBe(200)
    expect(await put('b')).toMatchObject({ status: 200, body: first.body })
    const repeat = await named('b'.repeat(32), 'job')
    expect(repeat.attributes).toMatchObject({ 'job.outcome': 'REPEATED' })
  })

  it('hold nothing of a card, of a reference or of an answer in any byte', async () => {
    const bytes = receiver.bytes()
    expect(bytes.length).toBeGreaterThan(1_000)
    for (const secret of [
      CARD.cardNumber,
      OTHER,
      '411111',
      '555555',
      CARD.cardHolderName,
      REFERENCE,
      installation.scope,
    ])
      expect(bytes.includes(secret)).toBe(false)
    expect(receiver.spans.filter(({ statusMessage, events }) => statusMessage !== '' || events > 0)).toEqual([])
  })
})
