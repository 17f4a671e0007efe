// A sweep publishes a result that couldn't be published at once. Its span has a link to the trace in which the result
// was made. The test makes the queue fail.
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { openInstallationKey } from '../../cli/open/installation-key.ts'
import { openTracing } from '../../cli/open/tracing.ts'
import { systemClock } from '../../src/clock.ts'
import { Fault } from '../../src/errors.ts'
import { resultsQueue } from '../../src/job/catalogue.ts'
import { CATALOGUE } from '../../src/job/composition.ts'
import { resultId as resultIdOf } from '../../src/job/envelope/ids.ts'
import { openRegistry } from '../../src/metrics.ts'
import * as outbox from '../../src/store/job/outbox.ts'
import type { Tracer } from '../../src/trace/tracer.ts'
import { openAnnouncer } from '../../workers/answer/announce.ts'
import { openWorkerMetrics } from '../../workers/metrics/metrics.ts'
import { CODER } from '../store/coder.ts'
import { describeStore } from '../support/engines.ts'
import { type Installation, openInstallation } from '../support/installation.ts'
import { openReceiver, type Receiver } from './receiver.ts'

describeStore('a result that waited', engine => {
  let receiver: Receiver
  let installation: Installation
  beforeAll(async () => {
    receiver = await openReceiver()
    installation = await openInstallation(engine, { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url })
  })
  afterAll(async () => {
    await installation?.close()
    await receiver?.close()
  })

  it('is published with a link to the trace of its job', async () => {
    const { session, vault, queues, credentials } = installation
    const { clientId } = credentials.signingKey
    const registry = openRegistry({ role: 'test' })
    const tracer = await openTracing(session, registry, { role: 'test' })
    if (!tracer) throw new Error('the settings turn traces on')
    let isAway = true
    const failing: typeof queues = {
      ...queues,
      add: async (queue, job) => {
        if (isAway) throw new Fault('queue_away')
        return queues.add(queue, job)
      },
      addBulk: async (queue, jobs) => {
        if (isAway) throw new Fault('queue_away')
        return queues.addBulk(queue, jobs)
      },
    }
    const begun: string[] = []
    const told: Tracer = {
      ...tracer,
      start: (name, options) => {
        begun.push(name)
        return tracer.start(name, options)
      },
    }
    const key = await openInstallationKey(vault.store, vault.halves)
    const announcer = openAnnouncer({
      store: vault.store,
      queues: failing,
      clock: systemClock,
      log: session.log,
      tracer: told,
      signing: () => ({ key, newKeys: [] }),
      metrics: openWorkerMetrics(registry, CATALOGUE),
      bodyOf: async ({ body }) => (body === null ? 'gone' : { body, inColumns: false }),
    })
    const receiptId = randomUUID()
    const resultId = resultIdOf(receiptId, 1)
    const result = { clientId, replyTo: null, resultId, receiptId, revision: 1, body: '{}' }
    const traced = tracer.start('job')
    const untraced = { ...result, receiptId: randomUUID(), resultId: randomUUID() }
    await announcer.publish(
      { ...result, outboxId: await outbox.insert(vault.store, CODER, result) },
      { log: session.log, span: traced },
    )
    await announcer.publish({ ...untraced, outboxId: await outbox.insert(vault.store, CODER, untraced) })
    traced.end()
    const parent = { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), sampled: false }
    const unrecorded = { ...result, receiptId: randomUUID(), resultId: randomUUID() }
    await announcer.publish(
      { ...unrecorded, outboxId: await outbox.insert(vault.store, CODER, unrecorded) },
      { log: session.log, span: tracer.start('job', { parent, isOurs: true }) },
    )
    // The trace isn't recorded, so it isn't stored.
    const { rows } = await vault.store.query<{ traceparent: string | null }>({
      text: 'select traceparent from tokenmill.outbox where receipt_id = $1',
      values: [unrecorded.receiptId],
    })
    expect(rows).toEqual([{ traceparent: null }])
    expect(await announcer.sweep(-1_000)).toBe(0)
    // A sweep that publishes nothing gets no span.
    expect(begun).toEqual([])
    isAway = false
    expect(await announcer.sweep(-1_000)).toBe(3)
    const swept = await receiver.span('the sweep', ({ name }) => name === 'publish waiting results')
    const { traceId, spanId } = traced.context
    expect(swept).toMatchObject({ parentId: '', links: [{ traceId, spanId }], attributes: { 'results.count': 3 } })
    const first = await receiver.span('the first attempt', ({ name }) => name === 'publish')
    expect(first).toMatchObject({ traceId, parentId: spanId, status: 2, attributes: { 'error.type': 'queue_away' } })
    await announcer.close()
    await queues.obliterate(resultsQueue(clientId, null))
  })
})
