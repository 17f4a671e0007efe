// What the queues do for producers and housekeeping.
import { afterAll, beforeAll, expect, it } from 'vitest'
import { describeEngines } from '../support/engines.ts'
import { until } from '../support/until.ts'
import { gate, type Opened, openEngine, recorder } from './bundle.ts'

describeEngines('the queues', engine => {
  let opened: Opened
  beforeAll(async () => {
    opened = await openEngine(engine)
  })
  afterAll(() => opened?.close())

  it('refuse ids that BullMQ would read otherwise, and names with a colon', async () => {
    const { queues } = opened
    for (const id of ['', '1', '12345', 'a:b', 'a:b:c', '0:x', '-a', 'ä', 'a'.repeat(129)]) {
      await expect(queues.add('q-ids', { id, data: {} })).rejects.toThrow('broken law')
    }
    for (const name of ['', 'a:b', 'a b', '.a']) {
      await expect(queues.add(name, { id: 'j_1', data: {} })).rejects.toThrow('broken law')
      expect(() => queues.work(name, recorder().handler, { concurrency: 1 })).toThrow('broken law')
    }
  })

  it('refuse a job beyond 5.5 MiB, and take one of 5 MiB', async () => {
    const { queues } = opened
    const tooLarge = { id: 'j_1', data: { block: 'x'.repeat(5.6 * 1024 * 1024) } }
    await expect(queues.add('q-large', tooLarge)).rejects.toMatchObject({ code: 'data' })
    await expect(queues.addBulk('q-large', [tooLarge])).rejects.toMatchObject({ code: 'data' })
    const large = 'x'.repeat(5 * 1024 * 1024)
    await queues.add('q-large', { id: 'j_2', data: { block: large } })
    expect(await queues.get('q-large', 'j_2')).toMatchObject({ data: { block: large } })
    expect(await queues.has('q-large', 'j_1')).toBe(false)
    await queues.obliterate('q-large')
  })

  if (engine.name === 'postgres')
    it('tell data that PostgreSQL cannot keep from a server that is away', async () => {
      const nul = { id: 'j_1', data: { text: 'a\u0000b' } }
      await expect(opened.queues.add('q-nul', nul)).rejects.toMatchObject({ code: 'data' })
    })

  it('keep the first of two jobs of one id, alone or in a chunk', async () => {
    const { queues } = opened
    await queues.add('q-twice', { id: 'j_1', data: 'first' })
    await queues.add('q-twice', { id: 'j_1', data: 'second' })
    await queues.addBulk('q-twice', [
      { id: 'j_2', data: 'first' },
      { id: 'j_1', data: 'third' },
      { id: 'j_2', data: 'second' },
    ])
    const listed = await queues.list('q-twice', ['waiting'], 0, 10)
    expect(listed.map(({ id, data }) => ({ id, data }))).toEqual([
      { id: 'j_1', data: 'first' },
      { id: 'j_2', data: 'first' },
    ])
  })

  it('count, list and find jobs of every state', async () => {
    const { queues } = opened
    const held = gate()
    const { seen, handler } = recorder(async ({ id }) => {
      if (id === 'j_later') return { deferMs: 3_600_000 }
      await held.passed
      return { done: true }
    })
    await queues.addBulk('q-states', [
      { id: 'j_later', data: 0 },
      { id: 'j_held', data: 1 },
    ])
    const worker = queues.work('q-states', handler, { concurrency: 1 })
    await until(() => seen.length === 2)
    await queues.addBulk('q-states', [
      { id: 'j_wait', data: 2 },
      { id: 'j_bulk', data: 3, priority: 10 },
    ])
    expect(await queues.depth('q-states')).toEqual({ waiting: 2, active: 1, delayed: 1, failed: 0 })
    const ids = async (state: 'waiting' | 'active' | 'delayed') =>
      (await queues.list('q-states', [state], 0, 9)).map(job => job.id)
    expect(await ids('waiting')).toEqual(['j_wait', 'j_bulk'])
    expect(await ids('active')).toEqual(['j_held'])
    expect(await ids('delayed')).toEqual(['j_later'])
    for (const id of ['j_later', 'j_held', 'j_wait', 'j_bulk']) expect(await queues.has('q-states', id)).toBe(true)
    expect(await queues.has('q-states', 'j_none')).toBe(false)
    expect(await queues.get('q-states', 'j_none')).toBeUndefined()
    expect(await queues.oldestMs('q-states')).toBeGreaterThanOrEqual(0)
    expect(await queues.oldestMs('q-none')).toBeUndefined()
    expect(await queues.remove('q-states', 'j_held')).toBe(false)
    expect(await queues.remove('q-states', 'j_wait')).toBe(true)
    expect(await queues.remove('q-states', 'j_wait')).toBe(false)
    expect(await queues.update('q-states', 'j_bulk', 'new')).toBe(true)
    expect(await queues.update('q-states', 'j_none', 'new')).toBe(false)
    expect(await queues.get('q-states', 'j_bulk')).toMatchObject({ id: 'j_bulk', data: 'new' })
    held.open()
    await worker.close(5_000)
  })

  it('count the oldest waiting job by its age', async () => {
    const { queues } = opened
    await queues.add('q-age', { id: 'j_1', data: {} })
    const [job] = await queues.list('q-age', ['waiting'], 0, 0)
    await until(async () => ((await queues.oldestMs('q-age')) ?? 0) > 40)
    await queues.add('q-age', { id: 'j_2', data: {} })
    expect(await queues.oldestMs('q-age')).toBeLessThanOrEqual(Date.now() - (job?.timestamp ?? 0))
    expect(await queues.oldestMs('q-age')).toBeGreaterThan(40)
  })

  it('remove a queue with a job that is being handled, and can be used again under its name', async () => {
    const { queues } = opened
    const held = gate()
    const { seen, handler } = recorder(async () => {
      await held.passed
      return { done: true }
    })
    const jobs = Array.from({ length: 50 }, (_, i) => ({ id: `j_${i}`, data: {} }))
    await queues.addBulk('q-gone', jobs)
    const worker = queues.work('q-gone', handler, { concurrency: 2 })
    await until(() => seen.length === 2)
    await queues.obliterate('q-gone')
    expect(await queues.depth('q-gone')).toEqual({ waiting: 0, active: 0, delayed: 0, failed: 0 })
    held.open()
    await queues.add('q-gone', { id: 'j_new', data: {} })
    await until(async () => seen.some(job => job.id === 'j_new') && !(await queues.has('q-gone', 'j_new')))
    expect(seen).toHaveLength(3)
    await worker.close(1_000)
  })

  it('know how many workers listen, also on a queue with a long name', async () => {
    const { queues } = opened
    const name = `results-c${'x'.repeat(25)}-${'y'.repeat(32)}`
    expect(await queues.workersOf(name)).toBe(0)
    const workers = [1, 2].map(() => queues.work(name, recorder().handler, { concurrency: 1 }))
    await Promise.all(workers.map(worker => worker.ready))
    await until(async () => (await queues.workersOf(name)) === 2)
    await workers[0]?.close(1_000)
    await until(async () => (await queues.workersOf(name)) === 1)
    await workers[1]?.close(1_000)
    await until(async () => (await queues.workersOf(name)) === 0)
  })

  it('hold the id of the first installation that claims them', async () => {
    const { queues } = opened
    expect(await queues.claimInstallation('one')).toBe('one')
    expect(await queues.claimInstallation('one')).toBe('one')
    // On PostgreSQL the store is in the same database and says which installation it is.
    expect(await queues.claimInstallation('two')).toBe(engine.name === 'redis' ? 'one' : 'two')
  })

  it('answer a ping', () => expect(opened.queues.ping()).resolves.toBeUndefined())
})
