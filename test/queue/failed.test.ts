// The failed jobs of a kind: copies that nobody works.
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { ReceivedJob } from '../../src/queue/engine.ts'
import {
  type FailedCopy,
  failedList,
  failedRetry,
  moveToFailed,
  scrubFailed,
  trimFailed,
} from '../../src/queue/failed.ts'
import { describeEngines } from '../support/engines.ts'
import { until } from '../support/until.ts'
import { type Opened, openEngine, recorder } from './bundle.ts'

describeEngines('failed jobs', engine => {
  let opened: Opened
  beforeAll(async () => {
    opened = await openEngine(engine)
  })
  afterAll(() => opened?.close())

  const copyOf = (kind: string, id: string): FailedCopy => ({
    jws: `jws of ${id}`,
    block: `block of ${id}`,
    kind,
    code: 'contention',
    attempt: 8,
    failedAt: Date.now(),
    jobId: id,
  })
  const fill = async (kind: string, count: number) => {
    for (let i = 0; i < count; i++) {
      await moveToFailed(opened.queues, kind, { id: `j_${i}`, enqueuedAt: 1 }, copyOf(kind, `j_${i}`))
    }
  }
  const scrub = ({ block: _, ...rest }: FailedCopy): FailedCopy => rest

  it('are not there for a kind that never failed', async () => {
    expect(await failedList(opened.queues, 'f-none')).toEqual([])
    expect(await failedRetry(opened.queues, 'f-none', 'f_x')).toBe(false)
    expect(await trimFailed(opened.queues, 'f-none')).toBe(0)
    expect(await scrubFailed(opened.queues, 'f-none', 0, scrub)).toBe(0)
  })

  it('leave their id free, are copied once although the worker repeats itself, and can be sent again', async () => {
    const { queues } = opened
    const { seen, handler } = recorder(async (job: ReceivedJob) => {
      if (seen.length === 2) return { done: true }
      const copy = { ...copyOf('f-kind', job.id), ...(job.data as { jws: string; block: string }) }
      await moveToFailed(queues, 'f-kind', job, copy)
      await moveToFailed(queues, 'f-kind', job, copy)
      return { failed: true, code: 'contention' }
    })
    await queues.add('f-kind', { id: 'j_1', data: { jws: 'a', block: 'b' } })
    const worker = queues.work('f-kind', handler, { concurrency: 1 })
    await until(async () => seen.length === 1 && !(await queues.has('f-kind', 'j_1')))
    const [failed, ...more] = await failedList(queues, 'f-kind')
    expect(more).toEqual([])
    expect(failed).toMatchObject({ jobId: 'j_1', kind: 'f-kind', code: 'contention', attempt: 8, scrubbed: false })
    expect(failed?.id).not.toBe('j_1')

    expect(await failedRetry(queues, 'f-kind', failed?.id ?? '')).toBe(true)
    await until(() => seen.length === 2)
    expect(seen[1]).toMatchObject({ id: 'j_1', data: { jws: 'a', block: 'b' }, attempt: 1 })
    expect(await failedList(queues, 'f-kind')).toEqual([])
    await worker.close(1_000)
  })

  it('lose their card data when they are old enough, oldest first, each once', async () => {
    const { queues } = opened
    await fill('f-scrub', 45)
    expect(await scrubFailed(queues, 'f-scrub', 3_600_000, scrub)).toBe(0)
    // A sweeper that dies in the middle has scrubbed the oldest, and the next one finds the rest.
    let calls = 0
    const dies = (copy: FailedCopy) => {
      if (++calls > 30) throw new Error('died')
      return scrub(copy)
    }
    await expect(scrubFailed(queues, 'f-scrub', 0, dies)).rejects.toThrow('died')
    expect((await failedList(queues, 'f-scrub')).map(job => job.scrubbed)).toEqual([
      ...Array(30).fill(true),
      ...Array(15).fill(false),
    ])
    expect(await scrubFailed(queues, 'f-scrub', 0, scrub)).toBe(15)
    expect(await scrubFailed(queues, 'f-scrub', 0, scrub)).toBe(0)
    const jobs = await failedList(queues, 'f-scrub')
    expect(jobs.every(job => job.scrubbed && job.block === undefined && job.jws === `jws of ${job.jobId}`)).toBe(true)
    expect(jobs).toHaveLength(45)
  })

  it('are bounded in number and age', async () => {
    const { queues } = opened
    await fill('f-trim', 50)
    expect(await trimFailed(queues, 'f-trim')).toBe(0)
    expect(await trimFailed(queues, 'f-trim', { countMax: 5 })).toBe(45)
    expect((await failedList(queues, 'f-trim')).map(job => job.jobId)).toEqual(['j_45', 'j_46', 'j_47', 'j_48', 'j_49'])
    expect(await trimFailed(queues, 'f-trim', { ageMsMax: 0 })).toBe(5)
    expect(await failedList(queues, 'f-trim')).toEqual([])
  })
})
