// The queues before a network: bounded, interactive first, and nobody is left waiting for ever.
import { afterEach, describe, expect, it } from 'vitest'
import { openPacer, type Pacer, type PacerOptions } from '../../src/scheme/pacer.ts'

let pacer: Pacer
afterEach(() => pacer.close())

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
})
