// Log lines of a job name the receipt, a chunk's batch and the trace, for people on call, but never the job's
// reference.
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Client } from '../../producers/client.ts'
import { tokenBatch } from '../../producers/token-batch.ts'
import { describeStore } from '../support/engines.ts'
import { type Installation, openInstallation } from '../support/installation.ts'
import { type Child, startCommand } from '../support/process.ts'
import { until } from '../support/until.ts'
import { openReceiver, type Receiver } from './receiver.ts'

const CARD = { cardNumber: '4111111111111111', expiryMonth: 12, expiryYear: 2030 }
const REFERENCE = 'canary-reference'
const TRACE_ID = /^[0-9a-f]{32}$/

describeStore('a log line', engine => {
  let receiver: Receiver
  let installation: Installation
  let client: Client
  beforeAll(async () => {
    receiver = await openReceiver()
    installation = await openInstallation(engine, { TOKENMILL_LOG_LEVEL: 'debug', TOKENMILL_PROCESSES: '1' })
    client = await installation.connect({ replyTo: 'logs' })
  })
  afterAll(async () => {
    await installation?.close()
    await receiver?.close()
  })

  async function withWorkers(env: Record<string, string>, work: (child: Child) => Promise<void>): Promise<void> {
    const child = startCommand(['workers'], { env: { ...(installation.env as Record<string, string>), ...env } })
    try {
      await child.line(/all worker processes work/, { stream: 'stderr' })
      await work(child)
    } finally {
      child.signal('SIGTERM')
      await child.exit
    }
  }
  const linesOf = (child: Child) =>
    child
      .stderr()
      .split('\n')
      .filter(line => line.startsWith('{'))
      .map(line => JSON.parse(line) as Record<string, unknown>)
  const attemptAt = (child: Child, kind: string) =>
    until(() => linesOf(child).find(line => line['msg'] === 'attempt' && line['kind'] === kind), { what: kind })

  async function create(): Promise<string> {
    const request = { token_scope: installation.scope, ...(await client.encryptCard(CARD)) }
    const { status, receipt_id } = await client.call('token-create', request, { reference: REFERENCE })
    expect(status).toBe('SUCCEEDED')
    return receipt_id
  }

  it('of a job names its receipt, of a chunk its batch too, and its trace', async () => {
    await withWorkers({ OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url }, async child => {
      const receipt = await create()
      expect(await attemptAt(child, 'token-create')).toMatchObject({ receipt, trace: expect.stringMatching(TRACE_ID) })
      const captureKey = installation.credentials.captureKeys.jwe
      if (!captureKey) throw new Error('the test client has a JWE key')
      const batchId = randomUUID()
      const plan = { batchId, recordKind: 'token-create' as const, tokenScope: installation.scope, captureKey }
      const lines = [JSON.stringify({ line: 2, request: { card: CARD }, reference: REFERENCE })]
      const ask = await tokenBatch(client.clientId, { ...plan, acceptedAt: Date.now() / 1000 }, { lines, number: 0 })
      if ('refused' in ask) throw new Error(`${ask.reason} ${ask.field}`)
      const { receipt_id } = await client.call('token-batch', ask.request, { jti: ask.jti, block: ask.block })
      const chunk = await attemptAt(child, 'token-batch')
      expect(chunk).toMatchObject({ receipt: receipt_id, batch: batchId, chunk: 0 })
      const span = await receiver.span('the chunk', ({ attributes }) => attributes['batch.id'] === batchId)
      expect(chunk['trace']).toBe(span.traceId)
      expect(child.stderr()).not.toContain(REFERENCE)
      expect(child.stderr()).not.toContain(CARD.cardNumber)
    })
  })

  it('names no trace where there are none', async () => {
    await withWorkers({}, async child => {
      const receipt = await create()
      const line = await attemptAt(child, 'token-create')
      expect(line).toMatchObject({ receipt })
      expect(line).not.toHaveProperty('trace')
    })
  })
})
