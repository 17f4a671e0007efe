// If many decryptions wait for the thread pool, those of jobs for which somebody waits come first.
import { availableParallelism } from 'node:os'
import { expect, it } from 'vitest'
import { inThreadPool } from '../../../src/vault/turns/thread-pool.ts'

const AT_ONCE_MAX = Math.min(availableParallelism(), 3)

/** Work that ends when the test says so, and notes its start. */
function openWork() {
  const started: string[] = []
  const ends = new Map<string, () => void>()
  const run = (name: string, isBackground: boolean) =>
    inThreadPool(
      () => {
        started.push(name)
        const { promise, resolve } = Promise.withResolvers<void>()
        ends.set(name, resolve)
        return promise
      },
      { isBackground },
    )
  const end = async (name: string) => {
    ends.get(name)?.()
    // The next one starts some promises later.
    for (let step = 0; step < 10; step += 1) await undefined
  }
  return { started, run, end }
}

it('work for which somebody waits starts before background work that came earlier, which then runs one at a time', async () => {
  const { started, run, end } = openWork()
  const all = ['b0', 'b1', 'b2', 'b3', 'b4', 'b5'].map(name => run(name, true))
  await undefined
  expect(started).toEqual(['b0', 'b1', 'b2'].slice(0, AT_ONCE_MAX))
  all.push(run('u0', false), run('u1', false))
  await end('b0')
  expect(started.at(-1)).toBe('u0')
  await end('b1')
  expect(started.at(-1)).toBe('u1')
  const before = started.length
  if (AT_ONCE_MAX > 2) await end('b2')
  await end('u0')
  // Background work waits for the last one that is running.
  expect(started).toHaveLength(before)
  await end('u1')
  expect(started).toHaveLength(before + 1)
  while (started.length < 8) await end(started.at(-1) ?? '')
  await end(started.at(-1) ?? '')
  await Promise.all(all)
  expect(started.filter(name => name.startsWith('b'))).toEqual(['b0', 'b1', 'b2', 'b3', 'b4', 'b5'])
})

it('work that fails keeps nothing else waiting', async () => {
  const failing = Array.from({ length: 5 }, () =>
    inThreadPool(() => Promise.reject(new Error('cannot be opened')), { isBackground: false }),
  )
  for (const one of failing) await expect(one).rejects.toThrow('cannot be opened')
  expect(await inThreadPool(async () => 'background', { isBackground: true })).toBe('background')
})
