// How a batch went, as its chart shows it: nothing is drawn that nobody noted.
import { describe, expect, it } from 'vitest'
import { courseOf, type Standing } from '../../../../producers/console/chart/course.ts'
import type { SeenSample } from '../../../../src/store/console/batch-samples.ts'

const MIN = 60_000
const batch = {
  rowsDone: 300,
  extentRows: 1_000 as number | null,
  activeAt: 10 * MIN,
  pausedAt: null as number | null,
  cancelledAt: null as number | null,
  finishedAt: null as number | null,
}
const at = (minutes: number, rowsDone: number, state: SeenSample['state'] = 'RUNNING'): SeenSample => ({
  at: minutes * MIN,
  rowsDone,
  rowsRefused: Math.floor(rowsDone / 10),
  state,
})
const standing: Standing = { state: 'RUNNING', speed: undefined, now: 10 * MIN, refused: 30 }
const course = (own: Partial<typeof batch>, samples: SeenSample[], told: Partial<Standing> = {}) =>
  courseOf({ ...batch, ...own }, samples, { ...standing, ...told })

describe('the course of a batch', () => {
  it('is none without a point', () => {
    expect(course({}, [])).toBeUndefined()
  })

  it('ends with what the batch’s row says, which is newer than its last point', () => {
    const { points, to } = course({ activeAt: 9 * MIN }, [at(0, 0), at(5, 100)]) ?? expect.fail()
    expect(points.map(point => [point.at / MIN, point.done, point.refused])).toEqual([
      ...[
        [0, 0, 0],
        [5, 100, 10],
      ],
      ...[
        [9, 300, 30],
        [10, 300, 30],
      ],
    ])
    expect(to).toBe(10 * MIN)
  })

  it('begins where its points begin, not at zero', () => {
    const { from, points } = course({}, [at(6, 200), at(8, 300)]) ?? expect.fail()
    expect({ from, first: points[0]?.done }).toEqual({ from: 6 * MIN, first: 200 })
  })

  it('ends when the batch ended, or with the chunk that came after', () => {
    expect(course({ finishedAt: 8 * MIN }, [at(0, 0), at(8, 300)])?.to).toBe(8 * MIN)
    expect(course({ cancelledAt: 7 * MIN }, [at(0, 0), at(8, 300)])?.to).toBe(8 * MIN)
  })

  it('has the stretches in which nothing was done, and the one that lasts', () => {
    const samples = [at(0, 0), at(1, 50, 'PAUSED'), at(2, 60, 'PAUSED'), at(4, 60), at(6, 300, 'STALLED')]
    const told = course({}, samples, { state: 'STALLED' })?.stretches
    expect(told).toEqual([
      { state: 'PAUSED', from: MIN, to: 4 * MIN, isNow: false },
      { state: 'STALLED', from: 6 * MIN, to: 10 * MIN, isNow: true },
    ])
  })

  it('has a pause and a stall that no point tells of', () => {
    const samples = [at(0, 0), at(1, 300)]
    const paused = course({ pausedAt: 4 * MIN }, samples, { state: 'PAUSED' })?.stretches
    expect(paused).toEqual([{ state: 'PAUSED', from: 4 * MIN, to: 10 * MIN, isNow: true }])
    const stalled = course({ activeAt: 2 * MIN }, samples, { state: 'STALLED' })?.stretches
    expect(stalled).toEqual([{ state: 'STALLED', from: 3 * MIN, to: 10 * MIN, isNow: true }])
  })

  it('goes on to the total at the present speed, for as long as it went at most', () => {
    const samples = [at(0, 0), at(9, 290)]
    const near = course({}, samples, { speed: 700 / 120 })
    expect(near?.forecast).toEqual({ at: 12 * MIN, done: 1_000 })
    expect(near?.to).toBe(12 * MIN)
    expect(near?.secondsLeft).toBeCloseTo(120)
    const far = course({}, samples, { speed: 0.1 })
    expect(far?.forecast).toEqual({ at: 20 * MIN, done: 360 })
    for (const none of [{ speed: 0 }, { speed: undefined }]) expect(course({}, samples, none)?.forecast).toBeUndefined()
    expect(course({ extentRows: null }, samples, { speed: 5 })?.forecast).toBeUndefined()
  })
})
