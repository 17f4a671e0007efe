// A time limit doesn't blame a server for the time in which this process stood still.
import { createServer } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { startTimeLimit } from '../src/clock.ts'
import { withTimeout } from '../src/queue/bounded-call.ts'
import { until } from './support/until.ts'

const standStill = (ms: number) => {
  const end = performance.now() + ms
  while (performance.now() < end);
}

describe('a time limit', () => {
  const calls: number[] = []
  let end = () => {}
  afterEach(() => {
    end()
    calls.length = 0
  })
  const start = (ms: number) => {
    const began = performance.now()
    end = startTimeLimit(ms, () => calls.push(performance.now() - began))
  }

  it('is over once, not before its time', async () => {
    start(50)
    await until(() => calls.length === 1)
    expect(calls[0]).toBeGreaterThanOrEqual(49)
    await until(() => performance.now() > 200)
    expect(calls).toHaveLength(1)
  })

  it('that was ended is never over', async () => {
    start(30)
    end()
    const began = performance.now()
    await until(() => performance.now() - began > 100)
    expect(calls).toEqual([])
  })

  it('that ended while the process stood still is over a while later', async () => {
    start(50)
    standStill(300)
    await until(() => calls.length === 1)
    // It came late, and then the same time again had to pass.
    expect(calls[0]).toBeGreaterThanOrEqual(349)
  })

  it('hears the answer that came while the process stood still', async () => {
    const server = createServer(socket => socket.end('here')).listen(0, '127.0.0.1')
    await until(() => server.listening)
    const { port } = server.address() as { port: number }
    const ask = () =>
      new Promise<string>(resolve => {
        setTimeout(async () => {
          const { connect } = await import('node:net')
          connect(port, '127.0.0.1').on('data', text => resolve(String(text)))
          standStill(400)
        }, 10)
      })
    expect(await withTimeout(200, ask())).toBe('here')
    server.close()
  })
})
