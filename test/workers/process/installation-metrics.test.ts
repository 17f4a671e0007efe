// A figure that can't be measured in time takes no other figure along.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { CATALOGUE } from '../../../src/job/composition.ts'
import { openRegistry, pageOf } from '../../../src/metrics.ts'
import type { Db } from '../../../src/store/pool.ts'
import { openInstallationMetrics } from '../../../workers/process/installation-metrics.ts'
import { MEASURES } from '../../../workers/scheduled.ts'

const DEPTH = { waiting: 1, active: 0, delayed: 0, failed: 0 }
const never = () => new Promise<never>(() => {})
const lateBy = <T>(ms: number, value: T) => new Promise<T>(resolve => setTimeout(resolve, ms, value))

type Answer = () => Promise<{ rows: never[]; count: number }>
const row = { rows: [{ rows: 1, oldest: 0, sentMs: 0 } as never], count: 1 }

describe('the figures of the installation', () => {
  beforeEach(() => {
    vi.useFakeTimers()
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  /** `answer`: what the store answers to a statement. */
  function open(answer: (text: string) => ReturnType<Answer>, depth = async (_queue: string) => DEPTH) {
    const registry = openRegistry({ role: 'scheduler' })
    const query = (({ text }) => (text.startsWith('set ') ? Promise.resolve(row) : answer(text))) as Db['query']
    const measure = openInstallationMetrics(registry, {
      store: { transaction: work => work({ query }) },
      queues: { depth, oldestMs: async () => 1_000 },
      catalogue: CATALOGUE,
      clock: () => Date.now(),
      more: MEASURES,
    })
    return async () => {
      const begun = Date.now()
      const measured = measure()
      await vi.advanceTimersByTimeAsync(5_000)
      await measured
      const page = await pageOf([await registry.snapshot()])
      const named = (name: string) => [...page.matchAll(new RegExp(`^tokenmill_${name}(\\{.*\\})? `, 'gm'))].length
      return { named, tookMs: Date.now() - begun }
    }
  }

  it('lose only that to whose question the store is slow', async () => {
    const figures = open(text => (text.includes('tokenmill.operation') ? never() : Promise.resolve(row)))
    const { named } = await figures()
    expect(named('promised_oldest_seconds')).toBe(1)
    for (const name of ['outbox_oldest_seconds', 'batches', 'webhook_due_oldest_seconds', 'audit_segment_age_seconds'])
      expect(named(name), name).toBeGreaterThan(0)
  })

  it('are all there once the round has ended, however long all of them took together', async () => {
    const figures = open(() => lateBy(2_000, row))
    expect((await figures()).named('outbox_oldest_seconds')).toBe(1)
    await vi.advanceTimersByTimeAsync(30_000)
    const { named } = await figures()
    for (const name of ['outbox_oldest_seconds', 'webhook_due_oldest_seconds', 'audit_segment_age_seconds'])
      expect(named(name), name).toBe(1)
  })

  it('keep those of other kinds if one queue does not answer, and lose it although it was measured before', async () => {
    let slow = ''
    const figures = open(
      async () => row,
      async queue => (queue === slow ? never() : DEPTH),
    )
    expect((await figures()).named('queue_oldest_seconds')).toBe(CATALOGUE.kinds.length)
    slow = 'token-batch'
    await vi.advanceTimersByTimeAsync(20_000)
    const { named } = await figures()
    expect(named('queue_oldest_seconds')).toBe(CATALOGUE.kinds.length - 1)
    expect(named('queue_jobs')).toBe(3 * (CATALOGUE.kinds.length - 1))
    expect(named('failed_jobs')).toBe(CATALOGUE.kinds.length - 1)
  })

  it('drop an answer that comes too late', async () => {
    const figures = open(text => (text.includes('tokenmill.outbox') ? lateBy(3_500, row) : Promise.resolve(row)))
    expect((await figures()).named('outbox_oldest_seconds')).toBe(0)
    expect((await figures()).named('outbox_oldest_seconds')).toBe(0)
  })
})
