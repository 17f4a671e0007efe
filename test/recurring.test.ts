// A recurring task goes on after failures, which are logged at different levels.
import { expect, it } from 'vitest'
import { Fault } from '../src/errors.ts'
import type { Logger } from '../src/logger.ts'
import { every } from '../src/recurring.ts'
import { LostRace } from '../src/store/pool.ts'

/** The levels at which `times` failures of a task are logged. */
async function levelsOf(times: number, error: Error): Promise<string[]> {
  const levels: string[] = []
  const at = (level: string) => () => void levels.push(level)
  const log = { error: at('error'), warn: at('warn'), debug: at('debug') } as unknown as Logger
  const done = Promise.withResolvers<void>()
  let runs = 0
  const stop = every(
    0,
    async () => {
      runs += 1
      if (runs <= times) throw error
      done.resolve()
    },
    { log, firstMs: 0 },
  )
  await done.promise
  await stop()
  return levels
}

it('a defect is logged as an error each time', async () => {
  for (const defect of [new Error('x'), new Fault('defect')])
    expect(await levelsOf(3, defect)).toEqual(['error', 'error', 'error'])
})

it('a fault or a lost race, which may pass, warns once in a while', async () => {
  for (const fault of [new Fault('store_away'), new LostRace('x')]) {
    const levels = await levelsOf(101, fault)
    expect(levels).toEqual(['warn', ...Array<string>(99).fill('debug'), 'warn'])
  }
})

it('a task that starts at once does not wait, and another one does', async () => {
  const runs: string[] = []
  const log = { error() {} } as unknown as Logger
  const stops = [
    every(60_000, async () => runs.push('at once'), { log, firstMs: 0 }),
    every(60_000, async () => runs.push('later'), { log }),
  ]
  expect(runs).toEqual(['at once'])
  await Promise.all(stops.map(stop => stop()))
})
