// What a run waits for, in the words of its progress line.
import { expect, it } from 'vitest'
import { watchAwaited } from '../../producers/progress.ts'
import type { FaultCode } from '../../src/errors.ts'
import type { Trouble } from '../../src/server-error.ts'
import { until } from '../support/until.ts'

const NOON = Date.UTC(2026, 0, 1, 12)

it('names a server that refuses, one that is away and one that holds up workers, and since when', async () => {
  let now = NOON
  let trouble: Trouble | undefined
  let held: FaultCode | undefined
  const listeners: Record<string, () => void> = {}
  const awaited = watchAwaited({
    queues: { on: (event, listener) => Object.assign(listeners, { [event]: listener }), trouble: () => trouble },
    client: { heldUpBy: async () => held },
    clock: () => now,
    everyMs: 1,
  })
  try {
    expect(awaited.text()).toBe('')
    held = 'store_busy'
    await until(() => awaited.text() !== '')
    now += 60_000
    expect(awaited.text()).toBe(
      '; waits since 12:00:00 UTC for workers: The token store is short of connections, locks or space.',
    )
    listeners['away']?.()
    expect(awaited.text()).toContain('since 12:01:00 UTC for the queue server, which does not answer')
    listeners['back']?.()
    trouble = { says: 'Redis is full', since: NOON - 1_000 } as Trouble
    expect(awaited.text()).toBe('; waits since 11:59:59 UTC for Redis is full')
    trouble = undefined
    held = undefined
    await until(() => awaited.text() === '')
  } finally {
    awaited.stop()
  }
})
