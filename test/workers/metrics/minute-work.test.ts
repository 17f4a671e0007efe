// What a worker says it did in its last minutes: rows of chunks and single jobs, by kind.

import { describe, expect, it } from 'vitest'
import { CATALOGUE } from '../../../src/job/composition.ts'
import { noCounts } from '../../../src/job/outcome.ts'
import { WAIT_BOUNDS_MS } from '../../../src/store/watch/work-minutes.ts'
import { openMinuteWork } from '../../../workers/metrics/minute-work.ts'

const MINUTE = 60_000

describe('a worker', () => {
  it('counts a single job by its end, and a chunk by its rows', () => {
    const work = openMinuteWork(CATALOGUE, () => 5 * MINUTE)
    for (const outcome of ['SUCCEEDED', 'SUCCEEDED', 'FAILED', 'FAULT', 'REPEATED', 'LATER', 'DROPPED'])
      work.noteEnd('token-create', outcome)
    work.noteEnd('token-batch', 'SUCCEEDED')
    work.noteRows('token-batch', { ...noCounts(), CREATED: 400, DUPLICATE: 5, REJECTED: 90, CANCELLED: 3, FAILED: 2 })
    const none = [...WAIT_BOUNDS_MS, 0].map(() => 0)
    expect(work.told()).toEqual([
      { minute: 5, kind: 'token-create', done: 2, refused: 1, failed: 1, waits: none },
      { minute: 5, kind: 'token-batch', done: 405, refused: 93, failed: 2, waits: none },
    ])
  })

  it('counts a chunk that failed for good as one', () => {
    const work = openMinuteWork(CATALOGUE, () => 0)
    work.noteEnd('token-batch', 'FAULT')
    expect(work.told()).toMatchObject([{ done: 0, failed: 1 }])
  })

  it('tells the last ten minutes, and forgets older ones', () => {
    let now = 0
    const work = openMinuteWork(CATALOGUE, () => now)
    for (; now < 30 * MINUTE; now += MINUTE) work.noteEnd('act', 'SUCCEEDED')
    now -= 1
    expect(work.told().map(({ minute }) => minute)).toEqual([20, 21, 22, 23, 24, 25, 26, 27, 28, 29])
  })

  it('puts each wait into the class of its bound, and longer ones into the last', () => {
    const work = openMinuteWork(CATALOGUE, () => 0)
    for (const ms of [0, 10, 10.5, 86_400_001]) work.noteWait('act', ms)
    const [{ waits = [] } = {}] = work.told()
    expect([waits[0], waits[1], waits.at(-1), waits.length]).toEqual([2, 1, 1, WAIT_BOUNDS_MS.length + 1])
  })
})
