// In whatever order chunks are answered, they are written in the order of the file, and what is unanswered or in memory
// has a bound.
import { setImmediate as turn } from 'node:timers/promises'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { type Limits, openWindow, type Touched } from '../../../producers/client/window.ts'

interface Chunk {
  position: number
}

function openCase({
  limits = { unanswered: 2 },
  putMax = Number.POSITIVE_INFINITY,
  touchedAt,
}: {
  limits?: Limits
  putMax?: number
  touchedAt?: (position: number) => Touched
}) {
  const written: number[] = []
  const outside = new Map<number, number>()
  const most = { unanswered: 0, inMemory: 0 }
  const answers = new Map<number, PromiseWithResolvers<number>>()
  const now = { limits }
  const window = openWindow<Chunk, number, number>({
    limits: () => now.limits,
    touched: touchedAt && (({ position }) => touchedAt(position)),
    endOf: ({ position }, answer) => {
      expect(answer).toBe(position)
      return answer
    },
    async write(end) {
      written.push(end)
    },
    waiting: {
      async put(position, end) {
        outside.set(position, end)
      },
      async take(position) {
        const end = outside.get(position)
        if (end === undefined) throw new Error('nothing waits')
        outside.delete(position)
        return end
      },
      isFull: () => outside.size >= putMax,
    },
  })
  /** Sends a chunk once there is room. */
  async function send(position: number): Promise<void> {
    await window.room({ position })
    const answer = Promise.withResolvers<number>()
    answers.set(position, answer)
    window.push({ position }, answer.promise)
    most.unanswered = Math.max(most.unanswered, answers.size)
    most.inMemory = Math.max(most.inMemory, window.size() - answers.size - outside.size)
  }
  function answer(position: number): void {
    answers.get(position)?.resolve(position)
    answers.delete(position)
  }
  return { window, written, outside, most, answers, now, send, answer }
}

it('any order of answers is written in the order of the file, within the bounds', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 4 }),
      fc.integer({ min: 1, max: 6 }),
      fc.array(fc.nat(), { minLength: 1, maxLength: 40 }),
      async (unanswered, putMax, picks) => {
        const run = openCase({ limits: { unanswered }, putMax })
        const sending = (async () => {
          for (let position = 0; position < picks.length; position += 1) await run.send(position)
          await run.window.drain()
        })()
        for (const pick of picks) {
          // Sending goes as far as it can before the next answer.
          await turn()
          const open = [...run.answers.keys()]
          run.answer(open[pick % open.length] ?? 0)
        }
        await sending
        expect(run.written).toEqual(picks.map((_, position) => position))
        expect(run.outside.size).toBe(0)
        expect(run.most.unanswered).toBeLessThanOrEqual(unanswered)
        expect(run.most.inMemory).toBeLessThanOrEqual(2 * unanswered)
      },
    ),
    { numRuns: 200 },
  )
})

it('a chunk waits for older ones that may change the same, and for no others', async () => {
  const touched = fc.oneof(
    { weight: 4, arbitrary: fc.uniqueArray(fc.constantFrom(...'abcdefgh'), { maxLength: 2 }).map(all => new Set(all)) },
    { weight: 1, arbitrary: fc.constant('all' as const) },
  )
  let together = 0
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.record({ touched, pick: fc.nat() }), { minLength: 1, maxLength: 30 }),
      async chunks => {
        const touchedAt = (position: number) => chunks[position]?.touched ?? 'all'
        const run = openCase({ limits: { unanswered: 3 }, touchedAt })
        const sending = (async () => {
          for (const position of chunks.keys()) await run.send(position)
          await run.window.drain()
        })()
        for (const { pick } of chunks) {
          await turn()
          const open = [...run.answers.keys()]
          together = Math.max(together, open.length)
          const changed = open.map(touchedAt)
          const named = changed.flatMap(names => (names === 'all' ? [] : [...names]))
          expect(new Set(named).size).toBe(named.length)
          if (changed.includes('all')) expect(open).toHaveLength(1)
          run.answer(open[pick % open.length] ?? 0)
        }
        await sending
        expect(run.written).toEqual([...chunks.keys()])
      },
    ),
    { numRuns: 200 },
  )
  expect(together).toBe(3)
})

it('chunks go on while the oldest has no answer, until what waits has its bound; the oldest is known', async () => {
  const run = openCase({ putMax: 5 })
  await run.send(0)
  for (let position = 1; position <= 7; position += 1) {
    await run.send(position)
    run.answer(position)
  }
  let sent = false
  const next = run.send(8).then(() => {
    sent = true
  })
  await turn()
  expect([sent, run.outside.size]).toEqual([false, 5])
  expect([run.written, run.window.awaited()]).toEqual([[], { position: 0 }])
  run.answer(0)
  await next
  run.answer(8)
  await run.window.drain()
  expect(run.written).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8])
  expect(run.window.awaited()).toBeUndefined()
})

it('one chunk at a time stays one at a time: nothing waits outside of memory', async () => {
  const run = openCase({ limits: { unanswered: 1 } })
  for (let position = 0; position < 5; position += 1) {
    await run.send(position)
    expect([run.answers.size, run.outside.size]).toEqual([1, 0])
    run.answer(position)
  }
  await run.window.drain()
  expect(run.written).toEqual([0, 1, 2, 3, 4])
})

it('until the first chunk is written no more are sent than may be unwritten', async () => {
  const run = openCase({ limits: { unanswered: 8, unwritten: 2 } })
  await run.send(0)
  await run.send(1)
  run.answer(1)
  let sent = false
  const next = run.send(2).then(() => {
    sent = true
  })
  await turn()
  expect([sent, run.outside.size]).toEqual([false, 0])
  run.answer(0)
  await next
  run.answer(2)
  await run.window.drain()
  expect(run.written).toEqual([0, 1, 2])
})

it('a chunk that must end the run does so in its turn, after older ones are written', async () => {
  const run = openCase({ limits: { unanswered: 1 } })
  await run.send(0)
  run.now.limits = { unanswered: 2 }
  await run.send(1)
  run.answers.get(1)?.reject(new Error('refused'))
  run.answers.delete(1)
  run.now.limits = { unanswered: 1 }
  await turn()
  expect(run.window.awaited()).toEqual({ position: 0 })
  run.answer(0)
  await expect(run.window.drain()).rejects.toThrow('refused')
  expect(run.written).toEqual([0])
})
