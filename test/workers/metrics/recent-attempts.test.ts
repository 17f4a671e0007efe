import { describe, expect, it } from 'vitest'
import { openRecentAttempts } from '../../../workers/metrics/recent-attempts.ts'

describe('the attempts of the last seconds', () => {
  const opened = () => {
    const clock = { ms: 0 }
    return { clock, recent: openRecentAttempts(() => clock.ms) }
  }

  it('say nothing if they are too few, and then the time that 99 of 100 keep', () => {
    const { recent } = opened()
    for (let ms = 1; ms < 20; ms++) recent.note('token-update', ms)
    expect(recent.p99()).toBeNull()
    for (let ms = 20; ms <= 200; ms++) recent.note('token-create', ms)
    expect(recent.p99()).toBe(198)
  })

  it('are forgotten after ten seconds', () => {
    const { clock, recent } = opened()
    for (let time = 0; time < 100; time++) recent.note('token-create', 900)
    clock.ms = 10_001
    expect(recent.p99()).toBeNull()
  })

  it('are jobs on cards only, and no more than fit', () => {
    const { recent } = opened()
    for (let time = 0; time < 10_000; time++) recent.note('token-create', time < 5_000 ? 900 : 10)
    for (let time = 0; time < 1_000; time++) recent.note('report', 60_000)
    expect(recent.p99()).toBe(10)
  })
})
