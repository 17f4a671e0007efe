// Calls to a card network and to a third party are in the trace of the job that needs them, with the call and its
// answer.
import { afterAll, beforeAll, expect, it } from 'vitest'
import { openTracing } from '../../cli/open/tracing.ts'
import { openRegistry } from '../../src/metrics.ts'
import { describeStore } from '../support/engines.ts'
import { type Installation, openInstallation } from '../support/installation.ts'
import { testPan } from '../support/test-pan.ts'
import { CONTRACT, openWorld, type World } from '../workers/provider/bundle.ts'
import { openReceiver, type Receiver } from './receiver.ts'

describeStore('calls to providers', engine => {
  let receiver: Receiver
  let installation: Installation
  let world: World
  beforeAll(async () => {
    receiver = await openReceiver()
    installation = await openInstallation(engine, { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url })
    world = await openWorld(installation)
    world.deps.tracer = await openTracing(installation.session, openRegistry({ role: 'test' }), { role: 'test' })
  })
  afterAll(async () => {
    await installation?.close()
    await receiver?.close()
  })

  it('are in the trace of the job', async () => {
    const pan = testPan(1)
    const request = { token_scope: installation.scope, ...(await world.cardOf(pan)) }
    const { record } = await world.ask('token-create', request)
    expect((await world.ask('scheme-token', { id: record?.['reuse_token'], action: 'ACTIVATE' })).code).toBe(200)
    const call = await receiver.span('a call', ({ name }) => name === 'call provider')
    const job = await receiver.span('its job', ({ name, traceId }) => name === 'job' && traceId === call.traceId)
    expect(job.attributes).toMatchObject({ 'job.kind': 'scheme-token', 'job.outcome': 'SUCCEEDED' })
    const reach = await receiver.span('its step', ({ spanId }) => spanId === call.parentId)
    expect(reach).toMatchObject({ name: 'reach', parentId: job.spanId })
    expect(call).toMatchObject({ kind: 3, attributes: { 'provider.call': 'PROVISION', 'provider.answer': 'token' } })
    expect(receiver.bytes().includes(pan)).toBe(false)
  })

  it('name a third party without its contract', async () => {
    const theirs = {
      reuse_token_type: 'THIRD_PARTY_1',
      reuse_token_details: { expiry_month: 7, expiry_year: 2033 },
      token_context: { payment_provider_contract: CONTRACT },
    }
    const request = { token_scope: installation.scope, ...(await world.cardOf(testPan(2))), ...theirs }
    expect((await world.ask('token-create', request)).code).toBe(200)
    const call = await receiver.span('a call', ({ attributes }) => attributes['provider.name'] === 'third-party')
    expect(call.name).toBe('call provider')
    expect(receiver.bytes().includes(CONTRACT)).toBe(false)
  })
})
