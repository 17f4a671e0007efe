// The failed jobs of a kind: copies that nobody works.
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import type { Queues, ReceivedJob } from '../../src/queue/engine.ts'
import {
  type FailedCopy,
  failedCopies,
  failedDiscard,
  failedFind,
  failedList,
  failedRetry,
  moveToFailed,
  scrubFailed,
  trimFailed,
} from '../../src/queue/failed.ts'
import { describeEngines } from '../support/engines.ts'
import { until } from '../support/until.ts'
import { gate, type Opened, openEngine, recorder } from './bundle.ts'

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
    clientId: 'c1',
  })
  const fill = async (kind: string, count: number) => {
    for (let i = 0; i < count; i++) {
      await moveToFailed(opened.queues, kind, { id: `j_${i}`, enqueuedAt: 1 }, copyOf(kind, `j_${i}`))
    }
  }
  /** How many jobs each call of `list` brought. */
  const measured = (queues: Queues) => {
    const sizes: number[] = []
    const list: Queues['list'] = async (...asked) => {
      const jobs = await queues.list(...asked)
      sizes.push(jobs.length)
      return jobs
    }
    return { sizes, list }
  }
  const scrub = ({ block: _, ...rest }: FailedCopy): FailedCopy => rest

  it('are not there for a kind that never failed', async () => {
    expect(await failedList(opened.queues, 'f-none')).toEqual([])
    expect(await failedRetry(opened.queues, 'f-none', 'f_x')).toBe('gone')
    expect(await failedDiscard(opened.queues, 'f-none', 'f_x')).toBe(false)
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

    expect(await failedRetry(queues, 'f-kind', failed?.id ?? '')).toBeUndefined()
    await until(() => seen.length === 2)
    expect(seen[1]).toMatchObject({ id: 'j_1', data: { jws: 'a', block: 'b' }, attempt: 1 })
    expect(await failedList(queues, 'f-kind')).toEqual([])
    await worker.close(1_000)
  })

  it('are not sent again while the worker that gave them up still has the job, which would lose both', async () => {
    const { queues } = opened
    const { passed, open } = gate()
    let copied = ''
    const { seen, handler } = recorder(async job => {
      if (seen.length > 1) return { done: true }
      copied = await moveToFailed(queues, 'f-work', job, copyOf('f-work', job.id))
      await passed
      return { failed: true, code: 'contention' }
    })
    await queues.add('f-work', { id: 'j_1', data: { jws: 'a' } })
    const worker = queues.work('f-work', handler, { concurrency: 1 })
    await until(() => copied !== '')
    expect(await failedRetry(queues, 'f-work', copied)).toBe('in_work')
    expect(await failedList(queues, 'f-work')).toHaveLength(1)
    open()
    await until(async () => !(await queues.has('f-work', 'j_1')))
    expect(await failedRetry(queues, 'f-work', copied)).toBeUndefined()
    await until(() => seen.length === 2)
    await worker.close(1_000)
  })

  it('stay until the job is queued, and a retry that was killed in between can be done again', async () => {
    const { queues } = opened
    await fill('f-killed', 1)
    const [copy] = await failedList(queues, 'f-killed')
    const killed: Queues = {
      ...queues,
      remove: () => {
        throw new Error('killed')
      },
    }
    await expect(failedRetry(killed, 'f-killed', copy?.id ?? '')).rejects.toThrow('killed')
    expect(await failedList(queues, 'f-killed')).toHaveLength(1)
    expect(await failedRetry(queues, 'f-killed', copy?.id ?? '')).toBeUndefined()
    expect(await failedList(queues, 'f-killed')).toEqual([])
    expect(await queues.depth('f-killed')).toMatchObject({ waiting: 1 })
  })

  it('are found from a moment on, without reading those that failed later', async () => {
    const { queues } = opened
    const jobs = Array.from({ length: 45 }, (_, i) => ({ id: `j_${i}`, failedAt: 1_000 + i }))
    for (const { id, failedAt } of jobs)
      await moveToFailed(queues, 'f-moments', { id, enqueuedAt: 1 }, { ...copyOf('f-moments', id), failedAt })
    const before = async (moment: number) => {
      const found: number[] = []
      for await (const { failedAt } of failedCopies(queues, 'f-moments', { before: moment })) found.push(failedAt)
      return found
    }
    const all = jobs.map(({ failedAt }) => failedAt).reverse()
    for (const moment of [0, 1_000, 1_001, 1_023, 1_044, 1_045, 9_999])
      expect(await before(moment)).toEqual(all.filter(failedAt => failedAt < moment))
  })

  it('are not sent again once their card data are gone, and are read newest first, each once', async () => {
    const { queues } = opened
    await fill('f-pages', 45)
    await scrubFailed(queues, 'f-pages', 0, copy => ({ ...copy, jws: '' }))
    const seen: string[] = []
    for await (const copy of failedCopies(queues, 'f-pages')) {
      seen.push(copy.jobId)
      // The oldest copies are trimmed meanwhile.
      if (seen.length === 1) expect(await trimFailed(queues, 'f-pages', { countMax: 38 })).toBe(7)
    }
    expect(seen).toEqual(Array.from({ length: 38 }, (_, i) => `j_${44 - i}`))
    const [oldest] = await failedList(queues, 'f-pages', 0, 0)
    expect(await failedRetry(queues, 'f-pages', oldest?.id ?? '')).toBe('emptied')
    expect(await failedDiscard(queues, 'f-pages', oldest?.id ?? '')).toBe(true)
    expect(await failedList(queues, 'f-pages')).toHaveLength(37)
  })

  it('are read few at a time where they hold blocks', async () => {
    const { queues } = opened
    const blocks = 12
    for (let i = 0; i < 30; i += 1) {
      const { block, ...copy } = copyOf('f-blocks', `j_${i}`)
      const whole = i < 30 - blocks ? copy : { ...copy, block: block ?? '' }
      await moveToFailed(queues, 'f-blocks', { id: `j_${i}`, enqueuedAt: 1 }, whole)
    }
    const { sizes, list } = measured(queues)
    const seen: string[] = []
    for await (const { jobId } of failedCopies({ ...queues, list }, 'f-blocks')) seen.push(jobId)
    expect(seen).toEqual(Array.from({ length: 30 }, (_, i) => `j_${29 - i}`))
    expect(sizes).toEqual([2, 2, 2, 2, 2, 2, 2, 16])
  })

  it('are swept in large pages, and few at a time where they hold blocks', async () => {
    const { queues } = opened
    for (let i = 0; i < 120; i += 1) {
      const { block, ...copy } = copyOf('f-swept', `j_${i}`)
      const whole = i < 10 || i >= 110 ? { ...copy, block: block ?? '' } : copy
      await moveToFailed(queues, 'f-swept', { id: `j_${i}`, enqueuedAt: 1 }, whole)
    }
    const { sizes, list } = measured(queues)
    expect(await trimFailed({ ...queues, list }, 'f-swept', { countMax: 20 })).toBe(100)
    expect(sizes).toEqual([2, 2, 2, 2, 2, 2, 50, 50])
    sizes.length = 0
    expect(await scrubFailed({ ...queues, list }, 'f-swept', 0, scrub)).toBe(20)
    expect(sizes).toEqual([2, 2, 2, 2, 2, 2, 8])
  })

  it('are found by their ids alone, without reading others, and no other key of the queue is taken for one', async () => {
    const { queues } = opened
    await fill('f-find', 3)
    const [, copy] = await failedList(queues, 'f-find')
    expect(await failedFind(queues, 'f-find', copy?.id ?? '')).toEqual(copy)
    for (const id of ['wait', 'meta', 'f_x']) expect(await failedFind(queues, 'f-find', id)).toBeUndefined()
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

  it('lose their card data in time, though they came in another order than they were made', async () => {
    const { queues } = opened
    const now = vi.spyOn(Date, 'now')
    const begun = 1_800_000_000_000
    const minutes = 60_000
    for (const [id, madeAt] of [
      ['j_later', begun + 20_000],
      ['j_earlier', begun],
    ] as const) {
      now.mockReturnValue(madeAt)
      await moveToFailed(queues, 'f-order', { id, enqueuedAt: 1 }, copyOf('f-order', id))
    }
    now.mockReturnValue(begun + 15 * minutes + 10_000)
    expect(await scrubFailed(queues, 'f-order', 15 * minutes, scrub)).toBe(1)
    now.mockReturnValue(begun + 17 * minutes)
    expect(await scrubFailed(queues, 'f-order', 15 * minutes, scrub)).toBe(1)
    now.mockRestore()
    expect((await failedList(queues, 'f-order')).map(({ block }) => block)).toEqual([undefined, undefined])
  })

  if (engine.redisUrls)
    it('that hold no JSON are removed, and stop nobody', async () => {
      const { queues } = opened
      await queues.add('failed-f-broken', { id: 'f_broken', data: {} })
      const redis = new Redis(engine.redisUrls?.[0] ?? '')
      await redis.hset(`${engine.prefix}:failed-f-broken:f_broken`, 'data', '{')
      redis.disconnect()
      await fill('f-broken', 2)
      expect(await failedList(queues, 'f-broken')).toHaveLength(2)
      expect(await scrubFailed(queues, 'f-broken', 0, scrub)).toBe(2)
      expect(await queues.has('failed-f-broken', 'f_broken')).toBe(false)
      await trimFailed(queues, 'f-broken')
      expect(await failedList(queues, 'f-broken')).toHaveLength(2)
    })

  it('that no worker wrote are removed when they are old enough, and stop nobody', async () => {
    const { queues } = opened
    await queues.add('failed-f-alien', { id: 'f_alien', data: { jws: 'may hold a card', block: 1 } })
    await fill('f-alien', 2)
    expect(await scrubFailed(queues, 'f-alien', 3_600_000, scrub)).toBe(0)
    expect(await queues.has('failed-f-alien', 'f_alien')).toBe(true)
    expect(await scrubFailed(queues, 'f-alien', 0, scrub)).toBe(2)
    expect(await queues.has('failed-f-alien', 'f_alien')).toBe(false)
    expect(await failedList(queues, 'f-alien')).toHaveLength(2)
  })

  it.each([
    ['an id that is no copy’s', 'f_1', {}],
    ['a code that is no word', `f_${'a'.repeat(43)}`, { code: '\u001b[2J' }],
    ['a code without end', `f_${'b'.repeat(43)}`, { code: 'a'.repeat(41) }],
  ])('with %s are not shown, and are removed as what no worker wrote', async (_, id, more) => {
    const { queues } = opened
    await queues.add('failed-f-forged', { id, data: { ...copyOf('f-forged', 'j_1'), ...more } })
    expect(await failedList(queues, 'f-forged')).toEqual([])
    expect(await failedRetry(queues, 'f-forged', id)).toBe('gone')
    await scrubFailed(queues, 'f-forged', 0, scrub)
    expect(await queues.has('failed-f-forged', id)).toBe(false)
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
