// A worker process whose clock differs from the store's takes no jobs: from its first moment on, and until it is right.
import { afterEach, expect, it, vi } from 'vitest'
import { openHealth } from '../../../src/health.ts'
import { openRegistry } from '../../../src/metrics.ts'
import type { Worker } from '../../../src/queue/engine.ts'
import type { Store } from '../../../src/store/pool.ts'
import { openStoreClock } from '../../../src/store/server.ts'
import { openClockWatch } from '../../../workers/process/clock-skew.ts'
import { silent } from '../../producers/bundle.ts'

afterEach(() => {
  vi.useRealTimers()
})

const STORE_MS = Date.UTC(2026, 0, 1)
const HOUR_MS = 3_600_000
const store = { query: async () => ({ rows: [{ now: STORE_MS }], count: 1 }) } as unknown as Store

function open(clock: () => number, asked = store) {
  const skews: number[] = []
  const metrics = { clockSkew: { set: (seconds: number) => skews.push(seconds) } } as never
  const told: string[] = []
  const worker = { pause: async () => told.push('pause'), resume: async () => told.push('resume') }
  return {
    skews,
    told,
    worker: worker as unknown as Worker,
    watch: openClockWatch({ store: asked, clock, metrics, log: silent }),
  }
}

it('knows before its workers are opened that the clock is off, and lets them go on once it is right', async () => {
  vi.useFakeTimers()
  let aheadMs = 2 * HOUR_MS
  const { told, skews, worker, watch } = open(() => STORE_MS + aheadMs)
  const clock = await watch
  expect(clock.isOff()).toBe(true)
  expect(clock.tooFar()).toEqual(["the clock is 7200 s off the store's"])
  const stop = clock.watch([worker])
  aheadMs = -4_000
  await vi.advanceTimersByTimeAsync(30_000)
  expect(clock.isOff()).toBe(false)
  aheadMs = -6_000
  await vi.advanceTimersByTimeAsync(30_000)
  expect(told).toEqual(['resume', 'pause'])
  expect(skews).toEqual([7_200, -4, -6])
  await stop()
})

it('is not called off because the store answers late, unless it is further off than that explains', async () => {
  vi.useFakeTimers({ now: STORE_MS })
  let [lateMs, aheadMs] = [0, 0]
  const late = {
    async query() {
      const now = Date.now()
      await new Promise(resolve => setTimeout(resolve, lateMs))
      return { rows: [{ now }], count: 1 }
    },
  } as unknown as Store
  const opened = open(() => Date.now() + aheadMs, late).watch
  await vi.advanceTimersByTimeAsync(10)
  const clock = await opened
  const stop = clock.watch([])
  lateMs = 14_000
  await vi.advanceTimersByTimeAsync(50_000)
  expect([clock.isOff(), clock.tooFar()]).toEqual([false, []])
  aheadMs = 60_000
  await vi.advanceTimersByTimeAsync(50_000)
  expect(clock.isOff()).toBe(true)
  lateMs = 0
  await vi.advanceTimersByTimeAsync(50_000)
  await stop()
})

it('is set right for those who must not go by it: also if it turns wrong later', async () => {
  vi.useFakeTimers()
  let aheadMs = HOUR_MS
  const registry = openRegistry({ role: 'gateway' })
  const storeClock = await openStoreClock(store, () => STORE_MS + aheadMs, { log: silent })
  const { clock, stop } = storeClock
  const health = openHealth(registry, { clock: storeClock })
  expect(clock()).toBe(STORE_MS)
  expect(await health.reasons()).toEqual(["the clock is 3600 s off the store's"])
  expect(JSON.stringify(await health.snapshot())).toContain('{"value":3600,"labels":{"process":"gateway"}}')
  aheadMs = -HOUR_MS
  expect(clock()).toBe(STORE_MS - 2 * HOUR_MS)
  await vi.advanceTimersByTimeAsync(30_000)
  expect(clock()).toBe(STORE_MS)
  expect(await health.reasons()).toEqual(["the clock is -3600 s off the store's"])
  aheadMs = 4_000
  await vi.advanceTimersByTimeAsync(30_000)
  expect(await health.reasons()).toEqual([])
  await stop()
})
