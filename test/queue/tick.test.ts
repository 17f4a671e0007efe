// The tick: one empty job for the next minute, however often it is requested, on both engines.
import { createPostgresBackend, Queue } from 'bullmq'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { describeEngines } from '../support/engines.ts'
import { until } from '../support/until.ts'
import { type Opened, openEngine, recorder } from './bundle.ts'

const ONE = { waiting: 0, active: 0, delayed: 1, failed: 0 }

describeEngines('a tick', engine => {
  let opened: Opened
  let raw: Queue
  beforeAll(async () => {
    opened = await openEngine(engine)
    raw = opened.pool
      ? (new Queue('t-tick', { connection: opened.pool as never }, createPostgresBackend as never) as Queue)
      : new Queue('t-tick', { connection: { url: engine.redisUrls?.[0] ?? '' }, prefix: engine.prefix })
  })
  afterAll(async () => {
    await raw?.close()
    await opened?.close()
  })

  const waiting = async () => {
    const [job] = await raw.getDelayed()
    if (!job) throw new Error('no tick waits')
    return job
  }

  it('is one job however many ask, holds nothing, and is due when the next minute begins', async () => {
    const asked = Date.now()
    for (let n = 0; n < 3; n++) await opened.queues.tick('t-tick')
    await Promise.all(Array.from({ length: 10 }, () => opened.queues.tick('t-tick').catch(() => undefined)))
    expect(await opened.queues.depth('t-tick')).toEqual(ONE)
    const job = await waiting()
    expect(job.data).toEqual({})
    const due = job.timestamp + job.delay
    // BullMQ reads the clock once for the delay and once for the job: they may be a moment apart.
    expect((due + 50) % 60_000).toBeLessThanOrEqual(100)
    expect(due).toBeGreaterThan(asked)
    expect(due).toBeLessThanOrEqual(Date.now() + 60_050)
  })

  it('comes once, is not continued by what lies in the server, and is laid again by whoever took it', async () => {
    const { seen, handler } = recorder()
    const worker = opened.queues.work('t-tick', handler, { concurrency: 1 })
    await worker.ready
    await (await waiting()).promote()
    await until(() => seen.length === 1)
    await until(async () => Object.values(await opened.queues.depth('t-tick')).every(n => n === 0))
    await opened.queues.tick('t-tick')
    expect(await opened.queues.depth('t-tick')).toEqual(ONE)
    await worker.close(1_000)
  })

  it('that was lost with the server’s data is laid anew', async () => {
    await opened.queues.obliterate('t-tick')
    await opened.queues.tick('t-tick')
    expect(await opened.queues.depth('t-tick')).toEqual(ONE)
    await opened.queues.obliterate('t-tick')
  })
})
