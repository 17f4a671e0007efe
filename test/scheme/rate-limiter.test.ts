// The queues before a network: bounded, interactive first, and nobody is left waiting for ever.
import { afterEach, describe, expect, it, vi } from 'vitest'
import { openPacer, type Pacer, type PacerOptions } from '../../src/scheme/rate-limiter.ts'

let pacer: Pacer
afterEach(() => {
  pacer.close()
  vi.useRealTimers()
})

function open(options: Partial<PacerOptions> = {}): Pacer {
  pacer = openPacer({
    ratePerSecond: 1_000,
    inFlightMax: 2,
    clock: Date.now,
    waitingMax: { interactive: 2, bulk: 2 },
    waitMsMax: { interactive: 5_000, bulk: 5_000 },
    ...options,
  })
  return pacer
}

describe('a turn', () => {
  it('is refused at once where the queue is full', async () => {
    open()
    const first = await pacer.turn('bulk')
    const waiting = [pacer.turn('bulk'), pacer.turn('bulk')]
    expect(await pacer.turn('bulk')).toBeUndefined()
    first?.end('none')
    expect(await waiting[0]).toBeDefined()
  })

  it('goes to an interactive call before bulk that came earlier', async () => {
    open()
    const order: string[] = []
    const held = [await pacer.turn('bulk'), await pacer.turn('interactive')]
    const bulk = pacer.turn('bulk').then(turn => {
      order.push('bulk')
      turn?.end('none')
    })
    const interactive = pacer.turn('interactive').then(turn => {
      order.push('interactive')
      turn?.end('none')
    })
    for (const turn of held) turn?.end('none')
    await Promise.all([bulk, interactive])
    expect(order).toEqual(['interactive', 'bulk'])
  })

  it('is given up after the longest wait, and at the end', async () => {
    open({ waitMsMax: { interactive: 50, bulk: 60_000 } })
    const held = [await pacer.turn('interactive'), await pacer.turn('interactive')]
    const late = pacer.turn('interactive')
    const last = pacer.turn('bulk')
    expect(await late).toBeUndefined()
    pacer.close()
    expect(await last).toBeUndefined()
    expect(await pacer.turn('interactive')).toBeUndefined()
    for (const turn of held) turn?.end('none')
  })

  it('that ends twice frees one place', async () => {
    open()
    const held = [await pacer.turn('interactive'), await pacer.turn('interactive')]
    held[0]?.end('none')
    held[0]?.end('none')
    expect(await pacer.turn('interactive')).toBeDefined()
    let third = false
    const waiting = pacer.turn('interactive').then(turn => {
      third = true
      return turn
    })
    await new Promise(resolve => setImmediate(resolve))
    expect(third).toBe(false)
    held[1]?.end('none')
    expect(await waiting).toBeDefined()
  })

  it('comes at once when the limit grows, and not at all while it is nothing', async () => {
    open({ ratePerSecond: 0, inFlightMax: 10 })
    let had = 0
    const turns = [pacer.turn('bulk'), pacer.turn('interactive')].map(turn => turn.then(() => (had += 1)))
    await new Promise(resolve => setTimeout(resolve, 50))
    expect(had).toBe(0)
    expect(pacer.load()).toEqual({
      started: { interactive: 0, bulk: 0 },
      waiting: { interactive: 1, bulk: 1 },
    })
    pacer.limit(1_000)
    await Promise.all(turns)
    expect(pacer.load()).toEqual({
      started: { interactive: 1, bulk: 1 },
      waiting: { interactive: 0, bulk: 0 },
    })
  })

  it('comes as often as the limit of the moment says', async () => {
    vi.useFakeTimers()
    open({ ratePerSecond: 100, inFlightMax: 1_000, waitingMax: { interactive: 1_000, bulk: 2 } })
    for (let call = 0; call < 1_000; call += 1) void pacer.turn('interactive').then(turn => turn?.end('none'))
    const within = async (ms: number) => {
      const before = pacer.load().started.interactive
      await vi.advanceTimersByTimeAsync(ms)
      return pacer.load().started.interactive - before
    }
    await within(1_000)
    expect(await within(1_000)).toBeCloseTo(100, -1)
    pacer.limit(20)
    await within(1_000)
    expect(await within(2_000)).toBeCloseTo(40, -1)
    expect(pacer.rate()).toBeCloseTo(20)
  })

  it('that waits for the end of others is no demand for a greater limit', async () => {
    open({ ratePerSecond: 1_000, inFlightMax: 2 })
    const held = await pacer.turn('bulk')
    const waiting = pacer.turn('bulk')
    expect(pacer.load().waiting).toEqual({ interactive: 0, bulk: 0 })
    held?.end('none')
    expect(await waiting).toBeDefined()
  })
})
