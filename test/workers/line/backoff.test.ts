// How long a job that failed waits before it is tried again: a doubling delay with full jitter, and a longest one.
import { afterEach, describe, expect, it, vi } from 'vitest'
import { backoffMs, RETRY } from '../../../workers/line/run-job.ts'

afterEach(() => {
  vi.restoreAllMocks()
})

const attempts = Array.from({ length: 20 }, (_, index) => index + 1)

describe('the delay before the next attempt', () => {
  it('is at most half a second after the first attempt, doubles with each, and ends at five minutes', () => {
    vi.spyOn(Math, 'random').mockReturnValue(1)
    expect(attempts.slice(0, 11).map(backoffMs)).toEqual([
      ...[500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000, 256_000],
      RETRY.mostMs,
    ])
    expect(attempts.slice(10).map(backoffMs)).toEqual(attempts.slice(10).map(() => 300_000))
  })

  it('is spread over the whole of it, down to nothing', () => {
    const random = vi.spyOn(Math, 'random')
    const delays = [0, 0.25, 0.5, 0.75].map(share => {
      random.mockReturnValue(share)
      return backoffMs(4)
    })
    expect(delays).toEqual([0, 1_000, 2_000, 3_000])
  })

  it('is a whole number of milliseconds', () => {
    for (const attempt of attempts) expect(Number.isInteger(backoffMs(attempt))).toBe(true)
  })
})
