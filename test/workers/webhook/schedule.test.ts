// What follows a receiver's answer: the next attempt, and a slower or disabled endpoint.
import { describe, expect, it } from 'vitest'
import { type Answered, judge, SCHEDULE } from '../../../workers/webhook/schedule.ts'

const NOW = Date.UTC(2030, 0, 31, 12)
const MINUTE_MS = 60_000
const judged = (answered: Answered, step = 0, chance = 0) => judge(answered, step, SCHEDULE, { now: NOW, chance })

describe('an attempt', () => {
  it('that is answered 2xx ends the delivery', () => {
    for (const status of [200, 202, 204, 299])
      expect(judged({ status })).toEqual({
        tried: { next: { state: 'DELIVERED' }, status, reason: null },
        endpoint: 'recover',
      })
  })

  it('that fails is repeated after 5 s, 5 min, 30 min, 2, 5, 10, 14, 20 and 24 h, and then no more', () => {
    const delays = SCHEDULE.delaysMs.map((_, step) => {
      const { next } = judged({ status: 500 }, step).tried
      return next.state === 'WAITING' ? next.inMs / MINUTE_MS : next.state
    })
    expect(delays).toEqual([5 / 60, 5, 30, 120, 300, 600, 840, 1200, 1440, 'FAILED'])
    expect(SCHEDULE.delaysMs[0]).toBe(0)
  })

  it('is repeated a little later by chance, so that many do not come together', () => {
    const [soonest, latest] = [0, 1].map(chance => judged({ status: 500 }, 1, chance).tried.next)
    expect(soonest).toMatchObject({ inMs: 5 * MINUTE_MS })
    expect(latest).toMatchObject({ inMs: 5.5 * MINUTE_MS })
  })

  it('that is redirected, refused, lost or late is a failure like any other', () => {
    const answers: Answered[] = [{ status: 302 }, { status: 404 }, { status: 199 }, { status: 600 }]
    const lost = ['unreachable', 'timeout', 'protocol', 'forbidden'].map(reason => ({ reason }))
    for (const answered of [...answers, ...lost])
      expect(judged(answered).tried.next).toEqual({ state: 'WAITING', inMs: 5_000, step: 1 })
    expect(judged({ status: 302 }).tried).toMatchObject({ status: 302, reason: 'redirect' })
    expect(judged({ reason: 'timeout' }).tried).toMatchObject({ status: null, reason: 'timeout' })
  })

  it('that is answered 410 disables the endpoint, and waits where it is', () => {
    expect(judged({ status: 410 }, 3)).toEqual({
      tried: { next: { state: 'WAITING', inMs: 0, step: 3 }, status: 410, reason: 'gone' },
      endpoint: 'disable',
    })
  })

  it('that comes at a bad time slows the endpoint: 429, 502, 504, Retry-After, no answer in time', () => {
    for (const status of [429, 502, 504]) expect(judged({ status }).endpoint).toEqual({ slowMs: SCHEDULE.slowMs })
    expect(judged({ status: 503, retryAfter: '120' }).endpoint).toEqual({ slowMs: 120_000 })
    expect(judged({ reason: 'timeout' }).endpoint).toEqual({ slowMs: 0 })
    expect(judged({ status: 500 }).endpoint).toBeUndefined()
  })

  it('is not repeated before the time that Retry-After names, as seconds or as a date, within a day', () => {
    const inMs = (retryAfter: string) => {
      const { next } = judged({ status: 429, retryAfter }).tried
      return next.state === 'WAITING' ? next.inMs : undefined
    }
    expect(inMs('90')).toBe(90_000)
    expect(inMs(new Date(NOW + 3_600_000).toUTCString())).toBe(3_600_000)
    expect(inMs('999999999')).toBe(86_400_000)
    for (const nonsense of ['soon', '', '-5', new Date(NOW - 5_000).toUTCString()]) expect(inMs(nonsense)).toBe(5_000)
  })
})
