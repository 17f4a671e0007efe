// A worker that closes takes no further jobs, finishes or returns those in progress, and ends by its deadline.
import { afterAll, beforeAll, expect, it } from 'vitest'
import { describeEngines } from '../support/engines.ts'
import { until } from '../support/until.ts'
import { gate, type Opened, openEngine, recorder } from './bundle.ts'

describeEngines('a worker that closes', engine => {
  let opened: Opened
  beforeAll(async () => {
    opened = await openEngine(engine)
  })
  afterAll(() => opened?.close())

  it('gives up on a handler that ignores its signal, and leaves its job to others', async () => {
    const { queues } = opened
    const { seen, handler } = recorder(() => new Promise(() => {}))
    const worker = queues.work('s-hangs', handler, { concurrency: 1 })
    await queues.add('s-hangs', { id: 'j_1', data: {} })
    await until(() => seen.length === 1)
    const began = performance.now()
    await worker.close(100)
    expect(performance.now() - began).toBeLessThan(100_000)
    expect(await queues.has('s-hangs', 'j_1')).toBe(true)
  })

  it('aborts the signal at the deadline, and the job is handed back without an attempt', async () => {
    const { queues } = opened
    const { seen, handler } = recorder()
    const worker = queues.work(
      's-back',
      (job, signal) => {
        seen.push(job)
        return new Promise(resolve => signal.addEventListener('abort', () => resolve({ deferMs: 0 })))
      },
      { concurrency: 1 },
    )
    await queues.add('s-back', { id: 'j_1', data: {} })
    await until(() => seen.length === 1)
    await worker.close(50)
    const next = queues.work('s-back', handler, { concurrency: 1 })
    await until(async () => seen.length === 2 && !(await queues.has('s-back', 'j_1')))
    expect(seen.map(job => job.attempt)).toEqual([1, 1])
    await next.close(1_000)
  })

  it('waits for the jobs being handled, finishes them, and takes no other', async () => {
    const { queues } = opened
    const held = gate()
    const { ids, handler } = recorder(async () => {
      await held.passed
      return { done: true }
    })
    const worker = queues.work('s-waits', handler, { concurrency: 2 })
    await queues.addBulk(
      's-waits',
      [1, 2, 3, 4].map(n => ({ id: `j_${n}`, data: {} })),
    )
    await until(() => ids().length === 2)
    expect(worker.active()).toBe(2)
    const closed = worker.close(10_000)
    expect(worker.close(1)).toBe(closed)
    held.open()
    await closed
    expect(ids()).toHaveLength(2)
    expect(worker.active()).toBe(0)
    expect(await queues.depth('s-waits')).toEqual({ waiting: 2, active: 0, delayed: 0, failed: 0 })
  })

  it('is soon closed when it is idle, just opened, or paused', async () => {
    const { queues } = opened
    const began = performance.now()
    const idle = queues.work('s-idle', recorder().handler, { concurrency: 1 })
    await idle.ready
    await idle.close(60_000)
    await queues.work('s-new', recorder().handler, { concurrency: 1 }).close(60_000)
    const paused = queues.work('s-paused', recorder().handler, { concurrency: 1 })
    await paused.ready
    await paused.pause()
    await paused.close(60_000)
    expect(performance.now() - began).toBeLessThan(100_000)
  })
})
