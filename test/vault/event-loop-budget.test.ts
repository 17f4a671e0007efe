// If many decryptions wait, those of jobs for which somebody waits come first.
import { setImmediate as turn } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { withinEventLoopBudget } from '../../src/vault/event-loop-budget.ts'

const burn = (ms: number) => {
  for (const end = performance.now() + ms; performance.now() < end; );
}

it('work for which somebody waits runs before background work that came earlier', async () => {
  const order: string[] = []
  const run = (name: string, isBackground: boolean) =>
    withinEventLoopBudget(
      () => {
        burn(3)
        order.push(name)
      },
      { isBackground },
    )
  const background = Array.from({ length: 20 }, (_, index) => run(`background ${index}`, true))
  await turn()
  const before = order.length
  const urgent = [run('urgent 0', false), run('urgent 1', false)]
  await Promise.all([...background, ...urgent])
  const [first, second] = [order.indexOf('urgent 0'), order.indexOf('urgent 1')]
  expect(order).toHaveLength(22)
  // Decryptions of the turn that has begun still run first.
  expect(first).toBeLessThan(before + 3)
  expect(second).toBe(first + 1)
})

it('background work isn’t held up by nobody', async () => {
  const all = Array.from({ length: 5 }, (_, index) => withinEventLoopBudget(() => index, { isBackground: true }))
  expect(await Promise.all(all)).toEqual([0, 1, 2, 3, 4])
})

it('work that fails keeps nothing else waiting', async () => {
  const failing = withinEventLoopBudget(
    () => {
      throw new Error('cannot be opened')
    },
    { isBackground: false },
  )
  await expect(failing).rejects.toThrow('cannot be opened')
  expect(await withinEventLoopBudget(() => 'background', { isBackground: true })).toBe('background')
})

it('background work runs once per turn while somebody waits for other work, which has further steps', async () => {
  await withinEventLoopBudget(() => 'urgent', { isBackground: false })
  let done = 0
  const background = Array.from({ length: 4 }, () =>
    withinEventLoopBudget(
      () => {
        done += 1
      },
      { isBackground: true },
    ),
  )
  const most: number[] = []
  while (done < background.length) {
    const before = done
    await turn()
    most.push(done - before)
  }
  await Promise.all(background)
  expect(Math.max(...most)).toBe(1)
})
