// A reader of a live page who is slow is passed over, gets only what is new when he reads again, and is given up at last.
import type { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { LIVE, openLive } from '../../../../producers/console/live/live.ts'
import { openLog } from '../../../../src/log.ts'
import type { Store } from '../../../../src/store/pool.ts'

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
})
afterEach(() => {
  vi.useRealTimers()
})

/** A stream; `reads` counts how often its view was read. From `lastFrom` reads on nothing changes any more. */
async function watch(lastFrom = Number.POSITIVE_INFINITY) {
  const sessionHash = Buffer.alloc(32, 7)
  const rows = [{ sessionHash, entities: null, isLocal: false }]
  const store = { query: async () => ({ rows, count: 1 }) } as unknown as Store
  const live = openLive({ store, isEmbedded: false, clock: () => 0, log: openLog('silent') })
  let reads = 0
  let output: Readable | undefined
  const reply = { headers: () => reply, send: (sent: Readable) => (output = sent) } as unknown as FastifyReply
  const session = { sessionHash, entities: null }
  const request = { session, raw: { socket: { destroyed: false } } } as unknown as FastifyRequest
  const read = async () => {
    const texts = { same: 'x', reads: `${++reads}` }
    return { shape: 's', at: `${reads}`, texts, ...(reads >= lastFrom ? { isLast: true as const } : {}) }
  }
  await live.open(request, reply, { key: 'one', read })
  if (!output) throw new Error('nothing was sent')
  return { live, output, reads: () => reads }
}
const turns = (n: number) => vi.advanceTimersByTimeAsync(n * LIVE.everyMs)
const wait = () => new Promise(resolve => setImmediate(resolve))
async function taken(output: Readable): Promise<unknown[]> {
  let text = ''
  output.on('data', chunk => {
    text += String(chunk)
  })
  output.resume()
  await wait()
  output.pause()
  output.removeAllListeners('data')
  return [...text.matchAll(/^data: (.*)$/gm)].map(([, json = '']) => JSON.parse(json))
}

it('is passed over, and then gets what has changed since', async () => {
  const { live, output, reads } = await watch()
  await turns(5)
  expect(reads()).toBe(6)
  expect(await taken(output)).toEqual([{ at: '1', shape: 's', texts: { same: 'x', reads: '1' } }])
  await turns(1)
  expect(await taken(output)).toEqual([{ at: '7', shape: 's', texts: { reads: '7' } }])
  await live.close()
})

it('is given up, and nothing is read any more when nobody watches', async () => {
  const { live, output, reads } = await watch()
  await turns(LIVE.skippedMax + 3)
  expect([live.streams(), output.destroyed]).toEqual([0, true])
  const before = reads()
  await turns(5)
  expect(reads()).toBe(before)
  await live.close()
})

it('is sent the last of a view once, and is over when he has taken it', async () => {
  const { live, output } = await watch(2)
  await taken(output)
  await turns(3)
  expect(live.streams()).toBe(1)
  expect(await taken(output)).toEqual([{ at: '2', shape: 's', texts: { reads: '2' }, isLast: true }])
  await wait()
  expect(live.streams()).toBe(0)
  await live.close()
})

it('is given up, too, if he never takes the last of a view', async () => {
  const { live, output } = await watch(1)
  await turns(LIVE.skippedMax + 3)
  expect([live.streams(), output.destroyed]).toEqual([0, true])
  await live.close()
})
