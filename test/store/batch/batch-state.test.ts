// The state of a batch by its row and the time, and what a sum of its chunks changes: the first that holds counts.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { BATCH_LIFE, type BatchLife, judgeSums, stateOf } from '../../../src/store/batch/batch-state.ts'

const NOW = 1_800_000_000_000
const LIFE: BatchLife = {
  extentChunks: 10,
  limitChunks: null,
  chunksDone: 3,
  pausedAt: null,
  cancelledAt: null,
  finishedAt: null,
  activeAt: NOW - 1_000,
}
const state = (life: Partial<BatchLife>, now = NOW) => stateOf({ ...LIFE, ...life }, now)

describe('the state of a batch', () => {
  it.each<[string, Partial<BatchLife>, string]>([
    ['RUNNING while chunks are answered', {}, 'RUNNING'],
    ['OPEN while nobody has said how many chunks there are', { extentChunks: null }, 'OPEN'],
    ['STALLED after a minute without an answer', { activeAt: NOW - BATCH_LIFE.stalledMs }, 'STALLED'],
    ['RUNNING a moment before', { activeAt: NOW - BATCH_LIFE.stalledMs + 1 }, 'RUNNING'],
    [
      'OPEN, not STALLED, where nobody knows what is outstanding',
      { extentChunks: null, activeAt: NOW - 3_600_000 },
      'OPEN',
    ],
    ['ABANDONED after eight days', { activeAt: NOW - BATCH_LIFE.abandonedMs }, 'ABANDONED'],
    ['ABANDONED without an extent, too', { extentChunks: null, activeAt: 0 }, 'ABANDONED'],
    ['PAUSED for ever', { pausedAt: 1, activeAt: 0 }, 'PAUSED'],
    ['PAUSED at its sender’s limit', { limitChunks: 3, activeAt: 0 }, 'PAUSED'],
    ['STALLED before its sender’s limit', { limitChunks: 4, activeAt: NOW - 60_000 }, 'STALLED'],
    ['FINISHED though it is paused', { pausedAt: 1, finishedAt: 2, chunksDone: 10 }, 'FINISHED'],
    ['CANCELLED before all', { pausedAt: 1, cancelledAt: 2, activeAt: 0 }, 'CANCELLED'],
  ])('is %s', (_, life, expected) => {
    expect(state(life)).toBe(expected)
  })

  it('never goes from ABANDONED or PAUSED to another by time alone, nor back from STALLED', () => {
    const order = ['RUNNING', 'OPEN', 'STALLED', 'ABANDONED']
    const life = fc.record({
      extentChunks: fc.option(fc.integer({ min: 1, max: 5 })),
      limitChunks: fc.option(fc.integer({ min: 1, max: 5 })),
      chunksDone: fc.integer({ min: 0, max: 5 }),
      pausedAt: fc.option(fc.constant(1)),
      cancelledAt: fc.option(fc.constant(1)),
      finishedAt: fc.option(fc.constant(1)),
      activeAt: fc.integer({ min: 0, max: 1_000_000_000 }),
    })
    const times = fc.tuple(fc.nat(1_000_000_000), fc.nat(1_000_000_000))
    fc.assert(
      fc.property(life, times, (given, [first, later]) => {
        const before = stateOf(given, given.activeAt + first)
        const after = stateOf(given, given.activeAt + first + later)
        if (order.includes(before)) expect(order.indexOf(after)).toBeGreaterThanOrEqual(order.indexOf(before))
        else expect(after).toBe(before)
      }),
    )
  })
})

describe('a sum of its chunks', () => {
  const row = { extentChunks: 10, chunksDone: 3, cancelledAt: null, finishedAt: null, failed: 0 }
  it.each<
    [
      string,
      Partial<typeof row> & { finishedAt?: number; cancelledAt?: number },
      { chunks: number; failed: number },
      string,
    ]
  >([
    ['is progress', {}, { chunks: 4, failed: 0 }, 'progress'],
    ['finishes the batch with its last chunk', {}, { chunks: 10, failed: 2 }, 'finish'],
    ['finishes no cancelled batch', { cancelledAt: 1 } as never, { chunks: 10, failed: 0 }, 'progress'],
    ['is ignored where receipts have gone since', { chunksDone: 5 }, { chunks: 4, failed: 0 }, 'ignore'],
    [
      'says nothing new of a finished batch',
      { finishedAt: 1, chunksDone: 10, failed: 2 } as never,
      { chunks: 10, failed: 2 },
      'ignore',
    ],
    [
      'revises a finished batch whose failed rows came to something',
      { finishedAt: 1, chunksDone: 10, failed: 2 } as never,
      { chunks: 10, failed: 1 },
      'revise',
    ],
  ])('%s', (_, life, sums, verdict) => {
    expect(judgeSums({ ...row, ...life }, sums)).toBe(verdict)
  })
})
