// The options that a producer writes into a job have no effect. BullMQ prefers a job's options to the worker's, so a
// worker replaces them before anything reads them.
import { createPostgresBackend, FlowProducer, Queue } from 'bullmq'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { describeEngines } from '../support/engines.ts'
import { until } from '../support/until.ts'
import { type Opened, openEngine, recorder } from './bundle.ts'

const EMPTY = { waiting: 0, active: 0, delayed: 0, failed: 0 }
const HOUR = 3_600_000

describeEngines('a hostile producer', engine => {
  let opened: Opened
  let redis: Redis | undefined
  const theirs: { close(): Promise<void> }[] = []
  beforeAll(async () => {
    opened = await openEngine(engine)
    redis = engine.redisUrls?.[0] ? new Redis(engine.redisUrls[0]) : undefined
  })
  afterAll(async () => {
    for (const { close } of theirs) await close()
    redis?.disconnect()
    await opened?.close()
  })

  /** Opens BullMQ itself, without this project's code. */
  function rawQueue(name: string): Queue {
    const queue = opened.pool
      ? (new Queue(name, { connection: opened.pool as never }, createPostgresBackend as never) as Queue)
      : new Queue(name, { connection: { url: engine.redisUrls?.[0] ?? '' }, prefix: engine.prefix })
    theirs.push({ close: () => queue.close() })
    return queue
  }
  /** Writes into a stored job. */
  async function tamper(queue: string, id: string, field: { redis: string; postgres: string }, value: string) {
    if (redis) await redis.hset(`${engine.prefix}:${queue}:${id}`, field.redis, value)
    else
      await opened.pool?.query(`update bullmq.job set ${field.postgres} = $1 where queue = $2 and id = $3`, [
        value,
        queue,
        id,
      ])
  }

  it('cannot have a failed job kept or repeated', async () => {
    const { seen, handler } = recorder(() => ({ failed: true, code: 'data' }))
    const opts = {
      attempts: 1_000_000,
      removeOnFail: false,
      backoff: { type: 'fixed', delay: 1 },
      keepLogs: 1_000_000,
      stackTraceLimit: 1_000,
      lifo: true,
    }
    await rawQueue('h-fails').add('x', {}, { jobId: 'j_1', ...opts })
    const worker = opened.queues.work('h-fails', handler, { concurrency: 1 })
    await until(async () => seen.length > 0 && !(await opened.queues.has('h-fails', 'j_1')))
    expect(await opened.queues.depth('h-fails')).toEqual(EMPTY)
    expect(seen).toHaveLength(1)
    await worker.close(1_000)
  })

  it('cannot have a finished job kept', async () => {
    const { seen, handler } = recorder()
    await rawQueue('h-done').add('x', {}, { jobId: 'j_1', removeOnComplete: false })
    const worker = opened.queues.work('h-done', handler, { concurrency: 1 })
    await until(async () => seen.length > 0 && !(await opened.queues.has('h-done', 'j_1')))
    await worker.close(1_000)
  })

  it('cannot forbid a retry, nor choose its delay', async () => {
    const { seen, handler } = recorder(() => (seen.length < 3 ? { retryInMs: 1 } : { done: true }))
    const queue = rawQueue('h-retries')
    await queue.add('x', {}, { jobId: 'j_once', attempts: 1, backoff: { type: 'exponential', delay: HOUR } })
    const worker = opened.queues.work('h-retries', handler, { concurrency: 1 })
    await until(() => seen.length === 3)
    expect(seen.map(job => job.attempt)).toEqual([1, 2, 3])
    await worker.close(1_000)
  })

  it('cannot stop a worker by a backoff that it does not know', async () => {
    const { seen, handler } = recorder(() => (seen.length === 1 ? { retryInMs: 1 } : { done: true }))
    await rawQueue('h-backoff').add('x', {}, { jobId: 'j_1', attempts: 5, backoff: { type: 'nonsense', delay: HOUR } })
    const worker = opened.queues.work('h-backoff', handler, { concurrency: 1 })
    await until(async () => seen.length === 2 && !(await opened.queues.has('h-backoff', 'j_1')))
    await worker.close(1_000)
  })

  it('has its job marked as tied when it comes with a parent', async () => {
    const { seen, handler } = recorder()
    const flows = opened.pool
      ? new FlowProducer({ connection: opened.pool as never }, createPostgresBackend as never)
      : new FlowProducer({ connection: { url: engine.redisUrls?.[0] ?? '' }, prefix: engine.prefix })
    theirs.push({ close: () => flows.close() })
    const children = [{ name: 'c', queueName: 'h-child', data: {}, opts: { jobId: 'j_child' } }]
    await flows.add({ name: 'p', queueName: 'h-parent', data: {}, opts: { jobId: 'j_parent' }, children })
    const worker = opened.queues.work('h-child', handler, { concurrency: 1 })
    await until(async () => seen.length === 1 && !(await opened.queues.has('h-child', 'j_child')))
    expect(seen[0]).toMatchObject({ id: 'j_child', tied: true })
    // On Redis a queue may be all that a producer can reach: its job's end must not write into another one.
    if (redis) expect(await redis.zscore(`${engine.prefix}:h-parent:waiting-children`, 'j_parent')).not.toBeNull()
    await worker.close(1_000)
  })

  it('cannot keep a worker busy by a schedule: the job is marked as tied and is not continued', async () => {
    const { seen, handler } = recorder()
    await rawQueue('h-repeat').upsertJobScheduler('forever', { every: 20 }, { name: 'x', data: {} })
    const worker = opened.queues.work('h-repeat', handler, { concurrency: 1 })
    await until(() => seen.length === 1)
    await until(async () => Object.values(await opened.queues.depth('h-repeat')).every(n => n === 0))
    expect(seen[0]).toMatchObject({ tied: true })
    await opened.queues.add('h-repeat', { id: 'j_after', data: {} })
    await until(() => seen.length === 2)
    expect(seen[1]).toMatchObject({ id: 'j_after', tied: false })
    await worker.close(1_000)
  })

  it('cannot fail a job unseen: one that stalled too often reaches the handler, marked as exhausted', async () => {
    const { seen, handler } = recorder(() => ({ failed: true, code: 'crashed' }))
    await opened.queues.add('h-stalled', { id: 'j_1', data: {} })
    await tamper('h-stalled', 'j_1', { redis: 'defa', postgres: 'deferred_failure' }, 'pan=4111111111111111')
    const worker = opened.queues.work('h-stalled', handler, { concurrency: 1 })
    await until(async () => seen.length === 1 && !(await opened.queues.has('h-stalled', 'j_1')))
    expect(seen[0]).toMatchObject({ id: 'j_1', exhausted: true })
    await worker.close(1_000)
  })

  it('leaves nothing of an error in the stored job but a code', async () => {
    const { seen, handler } = recorder(() => ({ retryInMs: HOUR }))
    await rawQueue('h-trace').add('x', {}, { jobId: 'j_1', attempts: 9, stackTraceLimit: 1_000 })
    const worker = opened.queues.work('h-trace', handler, { concurrency: 1 })
    await until(async () => seen.length === 1 && (await opened.queues.depth('h-trace')).delayed === 1)
    const stored = await rawQueue('h-trace').getJob('j_1')
    expect({ reason: stored?.failedReason, stacktrace: stored?.stacktrace }).toEqual({
      reason: 'retry',
      stacktrace: [],
    })
    await worker.close(1_000)
  })

  // BullMQ fetches a job that it can't read again and again, and on PostgreSQL no other job any more.
  const damages = engine.redisUrls
    ? [
        ['opts', '{"broken'],
        ['opts', 'null'],
        ['progress', '{"broken'],
        ['parent', '{"broken'],
        ['ats', 'many'],
        ['atm', 'many'],
      ]
    : [
        ['attempts_made', '2147483647'],
        ['attempts_started', '2147483647'],
      ]
  it.each(damages)(
    'cannot have a job handed out for ever by a damaged field: it is taken off and counted (%s %s)',
    async (field = '', value = '') => {
      const own = await openEngine(engine, { lockMs: 300 })
      const queue = `h-damaged-${field.replaceAll('_', '-')}-${value.length}`
      let damaged = 0
      const onDamaged = (jobs: number) => {
        damaged += jobs
      }
      const { seen, handler } = recorder()
      await own.queues.add(queue, { id: 'j_1', data: {} })
      await own.queues.add(queue, { id: 'j_2', data: {} })
      await tamper(queue, 'j_1', { redis: field, postgres: field }, value)
      const worker = own.queues.work(queue, handler, { concurrency: 1, stalledMs: 100, onDamaged })
      await until(async () => !(await own.queues.has(queue, 'j_1')) && damaged === 1, { what: 'its end' })
      await own.queues.add(queue, { id: 'j_1', data: { good: true } })
      await until(async () => Object.values(await own.queues.depth(queue)).every(n => n === 0))
      await until(async () => !(await own.queues.has(queue, 'j_1')))
      expect(seen.filter(({ id }) => id === 'j_2')).toHaveLength(1)
      expect(seen.filter(({ id }) => id === 'j_1').at(-1)).toMatchObject({ data: { good: true } })
      expect(damaged).toBe(1)
      await worker.close(1_000)
      await own.close()
    },
  )

  if (engine.name === 'redis')
    it('cannot wedge a worker by data that are not JSON', async () => {
      const { seen, handler } = recorder()
      await opened.queues.add('h-json', { id: 'j_1', data: {} })
      await opened.queues.add('h-json', { id: 'j_2', data: { fine: true } })
      await tamper('h-json', 'j_1', { redis: 'data', postgres: 'data' }, '{"broken')
      const worker = opened.queues.work('h-json', handler, { concurrency: 1 })
      await until(async () => seen.length === 2 && !(await opened.queues.has('h-json', 'j_1')))
      expect(seen.map(job => job.data)).toEqual([undefined, { fine: true }])
      await worker.close(1_000)
    })
})
