// What happens to a job, by the disposition that its handler returns.
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type Disposition, type Handler, heldUp, heldUpBy } from '../../src/queue/engine.ts'
import { describeEngines } from '../support/engines.ts'
import { until } from '../support/until.ts'
import { type Opened, openEngine, recorder } from './bundle.ts'

describeEngines('a worker', engine => {
  let opened: Opened
  beforeAll(async () => {
    opened = await openEngine(engine)
  })
  afterAll(() => opened?.close())

  it('takes a job whose handler throws off as failed, tells of the defect, and stores nothing of the error', async () => {
    const { queues } = opened
    const defects: string[] = []
    const worker = queues.work('throws', () => Promise.reject(new Error('pan=4111111111111111')), {
      concurrency: 1,
      onDefect: (error, job) => defects.push(`${job.id}: ${(error as Error).message}`),
    })
    await queues.add('throws', { id: 'j_1', data: {} })
    await until(() => defects.length)
    await until(async () => !(await queues.has('throws', 'j_1')))
    expect(defects).toEqual(['j_1: pan=4111111111111111'])
    expect(await queues.depth('throws')).toEqual({ waiting: 0, active: 0, delayed: 0, failed: 0 })
    await worker.close(1_000)
  })

  it('frees the id of a job that failed: the next one of this id is taken', async () => {
    const { queues } = opened
    const { seen, handler } = recorder(() => ({ failed: true, code: 'data' }))
    const worker = queues.work('fails', handler, { concurrency: 1 })
    await queues.add('fails', { id: 'j_1', data: 1 })
    await until(async () => seen.length === 1 && !(await queues.has('fails', 'j_1')))
    await queues.add('fails', { id: 'j_1', data: 2 })
    await until(() => seen.length === 2)
    expect(seen.map(job => ({ data: job.data, attempt: job.attempt }))).toEqual([
      { data: 1, attempt: 1 },
      { data: 2, attempt: 1 },
    ])
    await worker.close(1_000)
  })

  it('counts an attempt for a retry and none for a deferral', async () => {
    const { queues } = opened
    const answers: Disposition[] = [{ retryInMs: 5 }, { deferMs: 5 }, { deferMs: 0 }, { retryInMs: 0 }, { done: true }]
    const { seen, handler } = recorder(() => answers[seen.length - 1] ?? { done: true })
    const worker = queues.work('again', handler, { concurrency: 1 })
    await queues.add('again', { id: 'j_1', data: { a: 1 } })
    await until(() => seen.length === 5)
    expect(seen.map(job => job.attempt)).toEqual([1, 2, 2, 2, 3])
    expect(seen.every(job => !job.tied && !job.exhausted && job.stalled === 0)).toBe(true)
    await until(async () => !(await queues.has('again', 'j_1')))
    expect(seen).toHaveLength(5)
    await worker.close(1_000)
  })

  it('shows senders which server holds a job up, whether the job is to be repeated or is kept', async () => {
    const { queues } = opened
    const end = Promise.withResolvers<Disposition>()
    const answers = [{ retryInMs: 60_000, code: 'store_busy' }, end.promise]
    const worker = queues.work(
      'held',
      async job => {
        if (job.id === 'j_2') job.progress?.(heldUp('store_away'))
        return answers[job.id === 'j_1' ? 0 : 1] ?? { done: true }
      },
      { concurrency: 2 },
    )
    await queues.addBulk(
      'held',
      ['j_1', 'j_2'].map(id => ({ id, data: {} })),
    )
    const codeOf = async (id: string) => heldUpBy((await queues.get('held', id)) ?? {})
    await until(async () => (await codeOf('j_1')) === 'store_busy')
    await until(async () => (await codeOf('j_2')) === 'store_away')
    end.resolve({ done: true })
    await until(async () => !(await queues.has('held', 'j_2')))
    await worker.close(1_000)
    await queues.obliterate('held')
  })

  it('shows how far a job is', async () => {
    const { queues } = opened
    const end = Promise.withResolvers<Disposition>()
    const handler: Handler = job => {
      job.progress?.({ lines: 3 })
      return end.promise
    }
    const worker = queues.work('long', handler, { concurrency: 1 })
    await queues.add('long', { id: 'j_1', data: {} })
    await until(async () => (await queues.get('long', 'j_1'))?.progress !== undefined)
    expect((await queues.get('long', 'j_1'))?.progress).toEqual({ lines: 3 })
    end.resolve({ done: true })
    await until(async () => !(await queues.has('long', 'j_1')))
    await worker.close(1_000)
  })

  it('waits as long as a retry says, not less', async () => {
    const { queues } = opened
    const at: number[] = []
    const { seen, handler } = recorder(() => {
      at.push(performance.now())
      return seen.length === 1 ? { retryInMs: 300 } : { done: true }
    })
    const worker = queues.work('later', handler, { concurrency: 1 })
    await queues.add('later', { id: 'j_1', data: {} })
    await until(() => seen.length === 2)
    // Delays are kept in whole milliseconds.
    expect((at[1] ?? 0) - (at[0] ?? 0)).toBeGreaterThanOrEqual(295)
    await worker.close(1_000)
  })

  it('handles each of 400 jobs exactly once with ten at a time, and never more than ten', async () => {
    const { queues } = opened
    let now = 0
    let most = 0
    const { ids, handler } = recorder(async () => {
      most = Math.max(most, ++now)
      await new Promise(resolve => setImmediate(resolve))
      now -= 1
      return { done: true }
    })
    const jobs = Array.from({ length: 400 }, (_, i) => ({ id: `j_${i}`, data: { i } }))
    await queues.addBulk('many', jobs)
    const worker = queues.work('many', handler, { concurrency: 10 })
    await until(async () => Object.values(await queues.depth('many')).every(n => n === 0))
    expect(ids().toSorted()).toEqual(jobs.map(job => job.id).toSorted())
    expect(most).toBeLessThanOrEqual(10)
    await worker.close(1_000)
  })

  it('defers each of 200 jobs once without finishing or losing any, also with two workers on the queue', async () => {
    const { queues } = opened
    const times = new Map<string, number>()
    const { handler } = recorder(job => {
      const time = (times.get(job.id) ?? 0) + 1
      times.set(job.id, time)
      return time === 1 ? { deferMs: 20 } : { done: true }
    })
    const workers = [1, 2].map(() => queues.work('deferred', handler, { concurrency: 10 }))
    await queues.addBulk(
      'deferred',
      Array.from({ length: 200 }, (_, i) => ({ id: `j_${i}`, data: {} })),
    )
    await until(async () => times.size === 200 && Object.values(await queues.depth('deferred')).every(n => n === 0))
    expect([...times.values()].filter(n => n !== 2)).toEqual([])
    await Promise.all(workers.map(worker => worker.close(1_000)))
  })

  it('takes jobs of no priority before those of priority 10', async () => {
    const { queues } = opened
    const { ids, handler } = recorder()
    await queues.add('ranked', { id: 'j_bulk', data: {}, priority: 10 })
    await queues.add('ranked', { id: 'j_online', data: {} })
    const worker = queues.work('ranked', handler, { concurrency: 1 })
    await until(() => ids().length === 2)
    expect(ids()).toEqual(['j_online', 'j_bulk'])
    await worker.close(1_000)
  })

  it('takes nothing while it is paused, and goes on when resumed', async () => {
    const { queues } = opened
    const { ids, handler } = recorder()
    const worker = queues.work('paused', handler, { concurrency: 2 })
    await worker.ready
    await queues.add('paused', { id: 'j_1', data: {} })
    await until(() => ids().length === 1)
    // The end of a job fetches the next one, so a pause affects only later fetches.
    await until(async () => Object.values(await queues.depth('paused')).every(count => count === 0))
    await worker.pause()
    await queues.add('paused', { id: 'j_2', data: {} })
    const other = queues.work('paused-probe', handler, { concurrency: 1 })
    await queues.add('paused-probe', { id: 'j_probe', data: {} })
    await until(() => ids().includes('j_probe'))
    expect(ids()).not.toContain('j_2')
    await worker.resume()
    await until(() => ids().includes('j_2'))
    await Promise.all([worker.close(1_000), other.close(1_000)])
  })

  it.each(['opened paused', 'paused before it listens'])(
    'takes nothing when it is %s, until it is resumed',
    async how => {
      const { queues } = opened
      const { ids, handler } = recorder()
      const queue = `paused-${how.length}`
      await queues.add(queue, { id: 'j_1', data: {} })
      const worker = queues.work(queue, handler, { concurrency: 1, paused: how === 'opened paused' })
      if (how !== 'opened paused') await worker.pause()
      await worker.ready
      expect(await queues.depth(queue)).toMatchObject({ waiting: 1, active: 0 })
      await worker.resume()
      await until(() => ids().length === 1)
      await worker.close(1_000)
    },
  )
})
