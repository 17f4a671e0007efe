// A worker has a job while its lock holds. A worker that loses the lock is told; the job of a worker that dies goes to
// another.
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { describeEngines } from '../support/engines.ts'
import { startScript } from '../support/process.ts'
import { steady, until } from '../support/until.ts'
import { gate, type Opened, openEngine, recorder } from './bundle.ts'

const LOCK_MS = 600

describeEngines('a lock', engine => {
  let opened: Opened
  let redis: Redis | undefined
  beforeAll(async () => {
    opened = await openEngine(engine, { lockMs: LOCK_MS })
    redis = engine.redisUrls?.[0] ? new Redis(engine.redisUrls[0]) : undefined
  })
  afterAll(async () => {
    redis?.disconnect()
    await opened?.close()
  })

  async function steal(queue: string, id: string): Promise<void> {
    if (redis) await redis.set(`${engine.prefix}:${queue}:${id}:lock`, 'thief', 'PX', LOCK_MS)
    else
      await opened.pool?.query(`update bullmq.job set lock_token = 'thief' where queue = $1 and id = $2`, [queue, id])
  }

  async function countStalls(queue: string, id: string, stalls: number): Promise<void> {
    if (redis) await redis.hset(`${engine.prefix}:${queue}:${id}`, 'stc', stalls)
    else
      await opened.pool?.query('update bullmq.job set stalled_count = $3 where queue = $1 and id = $2', [
        queue,
        id,
        stalls,
      ])
  }

  it('that is lost aborts the signal of its job, which is run again; the worker goes on', async () => {
    const { queues } = opened
    const reasons: unknown[] = []
    const { seen, handler } = recorder()
    const worker = queues.work(
      'l-lost',
      (job, signal) => {
        if (seen.length > 0) return handler(job)
        seen.push(job)
        return new Promise(resolve => {
          signal.addEventListener('abort', () => {
            reasons.push(signal.reason)
            resolve({ done: true })
          })
        })
      },
      { concurrency: 1, stalledMs: 300 },
    )
    await queues.add('l-lost', { id: 'j_1', data: {} })
    await until(() => seen.length === 1)
    await steal('l-lost', 'j_1')
    await until(() => reasons.length)
    expect(reasons).toEqual(['lock lost'])
    await until(async () => seen.length === 2 && !(await queues.has('l-lost', 'j_1')))
    expect(seen[1]).toMatchObject({ id: 'j_1', attempt: 1, stalled: 1, exhausted: false })
    await worker.close(1_000)
  })

  it('is renewed for as long as its job takes', async () => {
    let tries = 0
    // A lock that isn't renewed in time is rightly lost.
    await steady(1_000, async () => {
      tries += 1
      const queue = `l-long-${tries}`
      const own = await openEngine(engine, { lockMs: 5 * LOCK_MS })
      const { queues } = own
      const held = gate()
      const { seen, handler } = recorder(async () => {
        await held.passed
        return { done: true }
      })
      const workers = [1, 2].map(() => queues.work(queue, handler, { concurrency: 1, stalledMs: 200 }))
      try {
        await queues.add(queue, { id: 'j_1', data: {} })
        await until(() => seen.length === 1)
        const began = performance.now()
        await until(() => performance.now() - began > 9 * LOCK_MS)
        held.open()
        await until(async () => !(await queues.has(queue, 'j_1')))
        expect(seen).toHaveLength(1)
      } finally {
        held.open()
        await Promise.all(workers.map(worker => worker.close(1_000)))
        await own.close()
      }
    })
  })

  it('of a process that has ended is taken away at once: its jobs are handed back in their order, stalled once more', async () => {
    const own = await openEngine(engine, { lockMs: 600_000 })
    const { queues } = own
    const held = gate()
    const slow = recorder(async () => {
      await held.passed
      return { done: true }
    })
    const alive = queues.work('l-back', slow.handler, { concurrency: 1, processId: 'alive' })
    const next = recorder()
    try {
      await queues.add('l-back', { id: 'j_slow', data: {} })
      await until(() => slow.seen.length === 1)
      await alive.pause()
      await queues.addBulk('l-back', [
        { id: 'j_1', data: { a: 1 } },
        { id: 'j_2', data: {}, priority: 10 },
      ])
      const url = engine.redisUrls?.[0] ?? engine.databaseUrl
      const child = startScript('test/queue/victim.ts', [url, engine.prefix, 'l-back', '600000', 'dead'])
      await child.line(/took j_1/)
      await until(async () => (await queues.depth('l-back')).active === 3)
      await child.kill9()
      await queues.add('l-back', { id: 'j_3', data: {} })

      expect(await queues.handBack('l-back', 'dea')).toBe(0)
      expect(await queues.handBack('l-back', 'dead')).toBe(2)
      expect(await queues.handBack('l-back', 'dead')).toBe(0)
      const worker = queues.work('l-back', next.handler, { concurrency: 1 })
      await until(() => next.seen.length === 3)
      expect(next.seen).toMatchObject([
        { id: 'j_1', data: { a: 1 }, attempt: 1, stalled: 1, exhausted: false },
        { id: 'j_3', stalled: 0 },
        { id: 'j_2', attempt: 1, stalled: 1, isBackground: true },
      ])
      await worker.close(1_000)
      held.open()
      await until(async () => !(await queues.has('l-back', 'j_slow')))
      expect(slow.seen).toHaveLength(1)
    } finally {
      held.open()
      await own.close()
    }
  })

  it('that is taken away for the sixth time gives the job to a worker to be answered, not to be run', async () => {
    const { queues } = opened
    const held = gate()
    const taken = recorder(async () => {
      await held.passed
      return { done: true }
    })
    const last = recorder()
    await queues.add('l-often', { id: 'j_1', data: {} })
    await countStalls('l-often', 'j_1', 5)
    const workers = [queues.work('l-often', taken.handler, { concurrency: 1, processId: 'dead' })]
    await until(() => taken.seen.length === 1)
    expect(taken.seen[0]).toMatchObject({ attempt: 1, stalled: 5, exhausted: false })
    await workers[0]?.pause()
    expect(await queues.handBack('l-often', 'dead')).toBe(1)
    workers.push(queues.work('l-often', last.handler, { concurrency: 1 }))
    await until(async () => last.seen.length === 1 && !(await queues.has('l-often', 'j_1')))
    expect(last.seen[0]).toMatchObject({ id: 'j_1', attempt: 1, stalled: 6, exhausted: true })
    held.open()
    await Promise.all(workers.map(worker => worker.close(1_000)))
  })

  it('of a process that was killed runs out, and another worker takes the job as stalled once', async () => {
    const { queues } = opened
    await queues.add('l-killed', { id: 'j_1', data: { a: 1 } })
    const url = engine.redisUrls?.[0] ?? engine.databaseUrl
    const child = startScript('test/queue/victim.ts', [url, engine.prefix, 'l-killed', `${LOCK_MS}`])
    await child.line(/took j_1/)
    await child.kill9()
    const { seen, handler } = recorder()
    const worker = queues.work('l-killed', handler, { concurrency: 1, stalledMs: 300 })
    await until(async () => seen.length === 1 && !(await queues.has('l-killed', 'j_1')))
    expect(seen[0]).toMatchObject({ id: 'j_1', data: { a: 1 }, attempt: 1, stalled: 1, exhausted: false })
    await worker.close(1_000)
  })
})
