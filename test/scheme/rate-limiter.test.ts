// The queues in front of a network are bounded, interactive calls come first, and no call waits for ever.
import { afterEach, describe, expect, it, vi } from 'vitest'
import { openRateLimiter, type RateLimiter, type RateLimiterOptions } from '../../src/scheme/rate-limiter.ts'

let limiter: RateLimiter
afterEach(() => {
  limiter.close()
  vi.useRealTimers()
})

function open(options: Partial<RateLimiterOptions> = {}): RateLimiter {
  limiter = openRateLimiter({
    ratePerSecond: 1_000,
    inFlightMax: 2,
    clock: Date.now,
    waitingMax: { interactive: 2, bulk: 2 },
    waitMsMax: { interactive: 5_000, bulk: 5_000 },
    ...options,
  })
  return limiter
}

describe('a permit', () => {
  it('is refused at once where the queue is full', async () => {
    open()
    const first = await limiter.acquire('bulk')
    const waiting = [limiter.acquire('bulk'), limiter.acquire('bulk')]
    expect(await limiter.acquire('bulk')).toBeUndefined()
    first?.end('none')
    expect(await waiting[0]).toBeDefined()
  })

  it('goes to an interactive call before bulk that came earlier', async () => {
    open()
    const order: string[] = []
    const held = [await limiter.acquire('bulk'), await limiter.acquire('interactive')]
    const bulk = limiter.acquire('bulk').then(permit => {
      order.push('bulk')
      permit?.end('none')
    })
    const interactive = limiter.acquire('interactive').then(permit => {
      order.push('interactive')
      permit?.end('none')
    })
    for (const permit of held) permit?.end('none')
    await Promise.all([bulk, interactive])
    expect(order).toEqual(['interactive', 'bulk'])
  })

  it('is given up after the longest wait, and at the end', async () => {
    open({ waitMsMax: { interactive: 50, bulk: 60_000 } })
    const held = [await limiter.acquire('interactive'), await limiter.acquire('interactive')]
    const late = limiter.acquire('interactive')
    const last = limiter.acquire('bulk')
    expect(await late).toBeUndefined()
    limiter.close()
    expect(await last).toBeUndefined()
    expect(await limiter.acquire('interactive')).toBeUndefined()
    for (const permit of held) permit?.end('none')
  })

  it('that ends twice frees one place', async () => {
    open()
    const held = [await limiter.acquire('interactive'), await limiter.acquire('interactive')]
    held[0]?.end('none')
    held[0]?.end('none')
    expect(await limiter.acquire('interactive')).toBeDefined()
    let third = false
    const waiting = limiter.acquire('interactive').then(permit => {
      third = true
      return permit
    })
    await new Promise(resolve => setImmediate(resolve))
    expect(third).toBe(false)
    held[1]?.end('none')
    expect(await waiting).toBeDefined()
  })

  it('comes at once when the limit grows, and not at all while it is nothing', async () => {
    open({ ratePerSecond: 0, inFlightMax: 10 })
    let had = 0
    const permits = [limiter.acquire('bulk'), limiter.acquire('interactive')].map(permit =>
      permit.then(() => (had += 1)),
    )
    await new Promise(resolve => setTimeout(resolve, 50))
    expect(had).toBe(0)
    expect(limiter.load()).toEqual({
      started: { interactive: 0, bulk: 0 },
      waiting: { interactive: 1, bulk: 1 },
    })
    limiter.limit(1_000)
    await Promise.all(permits)
    expect(limiter.load()).toEqual({
      started: { interactive: 1, bulk: 1 },
      waiting: { interactive: 0, bulk: 0 },
    })
  })

  it('comes as often as the limit of the moment says', async () => {
    vi.useFakeTimers()
    open({ ratePerSecond: 100, inFlightMax: 1_000, waitingMax: { interactive: 1_000, bulk: 2 } })
    for (let call = 0; call < 1_000; call += 1) void limiter.acquire('interactive').then(permit => permit?.end('none'))
    const within = async (ms: number) => {
      const before = limiter.load().started.interactive
      await vi.advanceTimersByTimeAsync(ms)
      return limiter.load().started.interactive - before
    }
    await within(1_000)
    expect(await within(1_000)).toBeCloseTo(100, -1)
    limiter.limit(20)
    await within(1_000)
    expect(await within(2_000)).toBeCloseTo(40, -1)
    expect(limiter.rate()).toBeCloseTo(20)
  })

  it('comes at the full rate again some time after 429, and says so though nothing was called since', async () => {
    let now = 0
    open({ clock: () => now })
    const permit = await limiter.acquire('interactive')
    permit?.end('throttled')
    expect([limiter.part(), limiter.rate()]).toEqual([0.95, 950])
    now = 60_000
    expect([limiter.part(), limiter.rate()]).toEqual([1, 1_000])
  })

  it('that waits for the end of others is no demand for a greater limit', async () => {
    open({ ratePerSecond: 1_000, inFlightMax: 2 })
    const held = await limiter.acquire('bulk')
    const waiting = limiter.acquire('bulk')
    expect(limiter.load().waiting).toEqual({ interactive: 0, bulk: 0 })
    held?.end('none')
    expect(await waiting).toBeDefined()
  })
})
