// The tracer alone, with a receiver that accepts, refuses or never answers: what spans may hold, which traces are
// recorded, and that no caller waits for a collector.
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { readConfig } from '../../src/config.ts'
import { openRegistry } from '../../src/metrics.ts'
import { allowed, nameOf } from '../../src/trace/attributes.ts'
import { batchContext, readTraceparent, traceparentOf } from '../../src/trace/context.ts'
import { EXPORT } from '../../src/trace/export-queue.ts'
import { openTraceMetrics, type TraceMetrics } from '../../src/trace/metrics.ts'
import { openTracer } from '../../src/trace/otel.ts'
import { openSampler } from '../../src/trace/sampler.ts'
import { tracingOf } from '../../src/trace/settings.ts'
import { type Tracer, within } from '../../src/trace/tracer.ts'
import { startScript } from '../support/process.ts'
import { until } from '../support/until.ts'
import { openReceiver, type Receiver } from './receiver.ts'

const PAN = '4111111111111111'
const TRACE = '0af7651916cd43dd8448eb211c80319c'
const PARENT = '00f067aa0ba902b7'

describe('a tracer', () => {
  let receiver: Receiver
  let metrics: TraceMetrics
  const opened: Tracer[] = []
  beforeEach(async () => {
    receiver = await openReceiver()
    metrics = openTraceMetrics(openRegistry({ role: 'test' }))
  })
  afterEach(async () => {
    await Promise.all(opened.splice(0).map(tracer => tracer.close()))
    await receiver.close()
  })
  function open(settings: Record<string, string> = {}): Tracer {
    const config = tracingOf(readConfig({ OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url, ...settings }).otel, () => {})
    if (!config) throw new Error('an endpoint turns traces on')
    const tracer = openTracer(config, { role: 'test', name: 'test-0', version: '0' }, metrics)
    opened.push(tracer)
    return tracer
  }
  const dropped = async (reason: string) =>
    (await metrics.dropped.get()).values.find(({ labels }) => labels.reason === reason)?.value

  it('tells spans with their parents, links and ends, and of a fault its code alone', async () => {
    const tracer = open()
    const batch = { traceId: TRACE, spanId: PARENT, sampled: true }
    const root = tracer.start('job', { kind: 'consumer', links: [batch], attributes: { 'job.kind': 'report' } })
    const failing = within(
      root.child('decide'),
      async () => {
        throw new Error(`text with ${PAN}`)
      },
      () => 'store_away',
    )
    await expect(failing).rejects.toThrow('text with')
    root.end()
    const decide = await receiver.span('the child', ({ name }) => name === 'decide')
    expect(decide).toMatchObject({
      status: 2,
      statusMessage: '',
      events: 0,
      attributes: { 'error.type': 'store_away' },
    })
    const job = await receiver.span('the root', ({ name }) => name === 'job')
    expect(decide).toMatchObject({ parentId: job.spanId, traceId: job.traceId })
    expect(job).toMatchObject({ kind: 5, status: 0, parentId: '', attributes: { 'job.kind': 'report' } })
    expect(job.links).toEqual([{ traceId: batch.traceId, spanId: batch.spanId }])
    expect(receiver.bytes().includes(PAN)).toBe(false)
  })

  it('records a parent of ours as its process decided, and a stranger’s as is decided here', async () => {
    const decide = (tracer: Tracer, sampled: boolean, isOurs: boolean) =>
      tracer.start('job', { parent: { traceId: TRACE, spanId: PARENT, sampled }, isOurs }).context
    const all = open()
    const none = open({ TOKENMILL_TRACES_RATIO: '0' })
    expect(decide(all, false, true)).toMatchObject({ traceId: TRACE, sampled: false })
    expect(decide(all, false, false)).toMatchObject({ traceId: TRACE, sampled: true })
    expect(decide(none, true, true)).toMatchObject({ traceId: TRACE, sampled: true })
    expect(decide(none, true, false)).toMatchObject({ traceId: TRACE, sampled: false })
    expect(none.start('job').child('decide').context.sampled).toBe(false)
  })

  it('loses none of what its queue holds, however fast it comes, and sends what is left at the end', async () => {
    const tracer = open({ TOKENMILL_TRACES_PER_SECOND: '100000' })
    for (let burst = 1; burst <= 3; burst += 1) {
      for (let n = 0; n < EXPORT.queueMax; n += 1) tracer.start('job').end()
      if (burst < 3) await until(() => receiver.spans.length === burst * EXPORT.queueMax)
    }
    await tracer.close()
    expect(receiver.spans).toHaveLength(3 * EXPORT.queueMax)
    expect([await dropped('queue_full'), await dropped('export_failed')]).toEqual([0, 0])
  })

  it('counts what a collector refuses, and goes on', async () => {
    receiver.answer = { status: 400 }
    const tracer = open()
    for (let n = 0; n < 10; n += 1) tracer.start('job').end()
    await until(async () => (await dropped('export_failed')) === 10)
    receiver.answer = { status: 200 }
    tracer.start('remember').end()
    await receiver.span('a later span', ({ name }) => name === 'remember')
    expect(await dropped('queue_full')).toBe(0)
  })

  it('keeps no more than its queue holds while a collector hangs, and ends all the same', async () => {
    receiver.answer = undefined
    const tracer = open({ TOKENMILL_TRACES_PER_SECOND: '100000' })
    const spans = 5 * EXPORT.queueMax
    for (let n = 0; n < spans; n += 1) tracer.start('job').end()
    // One batch is being sent, and the queue is full.
    expect(await dropped('queue_full')).toBe(spans - EXPORT.queueMax - EXPORT.batchMax)
    for (let n = 0; n < spans; n += 1) tracer.start('job').end()
    expect(await dropped('queue_full')).toBe(2 * spans - EXPORT.queueMax - EXPORT.batchMax)
    const begunAt = performance.now()
    await tracer.close()
    expect(performance.now() - begunAt).toBeLessThan(30_000)
  })
})

describe('an attribute', () => {
  it('is told if its name is known and its value has the form of that name', () => {
    const good = { 'job.kind': 'token-create', 'job.attempt': 1, 'http.route': '/oidc/api/v2/card/:id' }
    expect(allowed(good)).toEqual(good)
    const bad = JSON.parse(`{
      "exception.message": "x", "db.query.text": "select 1", "url.query": "a=b", "reference": "r", "constructor": "x",
      "job.kind": "two words", "job.attempt": -1, "job.receipt": "${PAN}", "batch.id": "${PAN}",
      "http.route": "/card?number=1", "batch.chunk": 4111111111111111, "error.type": "connect ECONNREFUSED 10.0.0.1:5432"
    }`) as Parameters<typeof allowed>[0]
    expect(allowed(bad)).toEqual({})
    expect(allowed({ 'batch.chunk': '1', 'batch.id': '4111_1111-1111_1111' })).toEqual({})
    expect(nameOf(JSON.parse(`"GET /card?number=${PAN}"`))).toBe('unknown')
    expect(nameOf('GET /card/:id')).toBe('GET /card/:id')
  })

  it('is nothing of any text that holds a card number', () => {
    fc.assert(
      fc.property(
        fc.stringMatching(/^([g-zG-Z]{0,20}[g-zG-Z_-])?$/),
        fc.stringMatching(/^[g-zG-Z_-]{0,20}$/),
        (before, after) => {
          const text = `${before}${PAN}${after}`
          const names = ['job.kind', 'job.outcome', 'batch.id', 'http.route', 'provider.name', 'report.type'] as const
          for (const name of names) {
            expect(allowed({ [name]: text })).toEqual({})
            // Without the number the same text is allowed.
            expect(allowed({ [name]: `${name === 'http.route' ? '/' : 'a'}${before}${after}` })).not.toEqual({})
          }
          expect(allowed({ 'http.route': `/${text}` })).toEqual({})
        },
      ),
    )
  })
})

describe('a traceparent', () => {
  it('is read as the standard has it, and anything else is passed over', () => {
    const text = `00-${TRACE}-${PARENT}-01`
    expect(readTraceparent(text)).toEqual({ traceId: TRACE, spanId: PARENT, sampled: true })
    const batch = batchContext('c', 'b')
    expect(batch && traceparentOf(batch)).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/)
    for (const name of [PAN, `run-${PAN}`, '4111-1111-1111-1111', '4111_1111_1111_1111'])
      expect(batchContext('c', name), name).toBeUndefined()
    const zeros = '0'.repeat(32)
    for (const wrong of ['', `01${text.slice(2)}`, text.toUpperCase(), `${text}-x`, `00-${zeros}-${PARENT}-01`])
      expect(readTraceparent(wrong)).toBeUndefined()
  })
})

describe('a sampler', () => {
  it('takes its share of the ids, the same ones in each process, and so many in a second', () => {
    let now = 0
    const ids = Array.from(
      { length: 10_000 },
      (_, n) => `${'0'.repeat(24)}${((n * 429_496) >>> 0).toString(16).padStart(8, '0')}`,
    )
    const some = openSampler({ ratio: 0.25, perSecond: 1e9, clock: () => now })
    const taken = ids.filter(some)
    expect(taken.length).toBeGreaterThan(2_400)
    expect(taken.length).toBeLessThan(2_600)
    expect(ids.filter(openSampler({ ratio: 0.25, perSecond: 1e9, clock: () => now }))).toEqual(taken)
    const capped = openSampler({ ratio: 1, perSecond: 5, clock: () => now })
    expect(ids.slice(0, 100).filter(capped)).toHaveLength(5)
    now = 1_000
    expect(ids.slice(0, 100).filter(capped)).toHaveLength(5)
    expect(ids.filter(openSampler({ ratio: 0, perSecond: 5, clock: () => now }))).toEqual([])
  })
})

describe('the settings of OpenTelemetry', () => {
  const flaws: string[] = []
  const of = (env: NodeJS.ProcessEnv) => tracingOf(readConfig(env).otel, flaw => flaws.push(flaw))

  it('turn traces on and off', () => {
    expect(of({})).toBeUndefined()
    expect(of({ OTEL_SERVICE_NAME: 'x', OTEL_RESOURCE_ATTRIBUTES: 'a=b' })).toBeUndefined()
    expect(of({ OTEL_TRACES_EXPORTER: 'otlp' })?.url).toBe('http://localhost:4318/v1/traces')
    expect(of({ OTEL_EXPORTER_OTLP_ENDPOINT: 'https://c:1/x/' })?.url).toBe('https://c:1/x/v1/traces')
    const both = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://c', OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://t/own' }
    expect(of(both)?.url).toBe('http://t/own')
    expect(of({ ...both, OTEL_SDK_DISABLED: 'TRUE' })).toBeUndefined()
    expect(of({ ...both, OTEL_TRACES_EXPORTER: 'none' })).toBeUndefined()
    expect(of({ ...both, OTEL_EXPORTER_OTLP_HEADERS: 'a=1, b=x%20y' })?.headers).toEqual({ a: '1', b: 'x y' })
  })

  it('that cannot be obeyed turn traces off with a warning that names them, and end no process', () => {
    const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://c' }
    const wrong = {
      OTEL_EXPORTER_OTLP_ENDPOINT: ['collector:4317', 'grpc://c', 'http://c?x=1'],
      OTEL_EXPORTER_OTLP_HEADERS: ['no pairs'],
      OTEL_EXPORTER_OTLP_PROTOCOL: ['grpc'],
      OTEL_TRACES_EXPORTER: ['zipkin'],
      OTEL_RESOURCE_ATTRIBUTES: ['team=größe'],
      OTEL_SERVICE_NAME: ['größe'],
    }
    for (const [name, values] of Object.entries(wrong))
      for (const value of values) {
        flaws.length = 0
        expect(of({ ...endpoint, [name]: value }), value).toBeUndefined()
        expect(flaws).toEqual([expect.stringMatching(`^${name}: `)])
        expect(flaws[0]).not.toContain(value)
        // If traces are off, settings for other programs on the host aren't errors.
        expect(of({ ...endpoint, [name]: value, OTEL_SDK_DISABLED: 'true' })).toBeUndefined()
        expect(flaws).toHaveLength(1)
      }
    flaws.length = 0
    expect(
      of({ OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc', OTEL_SDK_DISABLED: '1', OTEL_SERVICE_NAME: 'größe' }),
    ).toBeUndefined()
    expect(flaws).toEqual([])
    const odd = { OTEL_SERVICE_NAME: 'My Vault', OTEL_RESOURCE_ATTRIBUTES: 'app.kubernetes.io/name=x,' }
    expect(of({ ...endpoint, ...odd })).toMatchObject({
      serviceName: 'My Vault',
      resource: { 'app.kubernetes.io/name': 'x' },
    })
  })

  it('that are our own end the process, by name', () => {
    for (const [name, value] of [
      ['TOKENMILL_TRACES_RATIO', '2'],
      ['TOKENMILL_TRACES_PER_SECOND', '0'],
    ] as const)
      expect(() => readConfig({ [name]: value })).toThrow(new RegExp(`^${name}: `))
  })
})

describe('without traces', () => {
  it('none of our packages is loaded', async () => {
    const packages = async (...args: string[]) => {
      const child = startScript('test/trace/loaded.ts', args)
      await child.exit
      return JSON.parse(child.stdout()) as string[]
    }
    // prom-client loads this one by itself.
    expect(await packages()).toEqual(['@opentelemetry/api'])
    expect(await packages('on')).toContain('@opentelemetry/sdk-trace')
  })
})
