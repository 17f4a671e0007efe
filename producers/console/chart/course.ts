// How a batch went, as numbers for its chart: points, the stretches in which it was paused or stalled, the total, and where it
// will be if it goes on like this. It decides and draws nothing.

import type { BatchState } from '../../../src/job/choices.ts'
import { BATCH_LIFE } from '../../../src/store/batch/batch-state.ts'
import type { SeenSample } from '../../../src/store/console/batch-samples.ts'
import type { SeenBatch } from '../../../src/store/console/batches.ts'

/** Rows that were done at a moment (ms since the epoch), and how many of them were refused. */
export interface Point {
  at: number
  done: number
  refused: number
}

/** A stretch of time, from `from` to `to`, in which nothing was done. `isNow`: it lasts. */
export interface Stretch {
  state: 'PAUSED' | 'STALLED'
  from: number
  to: number
  isNow: boolean
}

export interface Course {
  points: Point[]
  stretches: Stretch[]
  from: number
  to: number
  /** The batch's rows; null: not known. */
  total: number | null
  /** Where the last point goes on to at the present speed, up to the right edge; undefined: it doesn't go on. */
  forecast: Pick<Point, 'at' | 'done'> | undefined
  /** Rows per second, and how many seconds are left at that speed; undefined as there. */
  speed: number | undefined
  secondsLeft: number | undefined
}

export interface Standing {
  state: BatchState
  /** Rows per second; undefined: the batch isn't going on. */
  speed: number | undefined
  now: number
  refused: number
}

/** Undefined if there are too few points for a line. `samples`: oldest first. */
export function courseOf(
  batch: Pick<SeenBatch, 'rowsDone' | 'extentRows' | 'activeAt' | 'pausedAt' | 'cancelledAt' | 'finishedAt'>,
  samples: readonly SeenSample[],
  { state, speed, now, refused }: Standing,
): Course | undefined {
  const [first] = samples
  const latest = samples.at(-1)
  // A chunk that was under way when the batch was cancelled is done, too.
  const end = Math.max(batch.finishedAt ?? batch.cancelledAt ?? now, latest?.at ?? 0)
  if (!first || end <= first.at) return undefined
  const sampled = samples.map(({ at, rowsDone, rowsRefused }) => ({ at, done: rowsDone, refused: rowsRefused }))
  const last = sampled.at(-1)
  const isSettled = last !== undefined && last.done === batch.rowsDone && last.refused === refused
  // What the row says now is newer than the last point.
  const standing = {
    at: Math.max(isSettled ? end : Math.min(batch.activeAt, end), last?.at ?? 0),
    done: batch.rowsDone,
    refused,
  }
  const points = [...sampled, standing]
  if (standing.at < end) points.push({ ...standing, at: end })
  const forecast = forecastOf(standing, { speed, total: batch.extentRows, from: first.at, now: end })
  const to = Math.max(end, forecast?.at ?? 0)
  const left = batch.extentRows === null ? undefined : batch.extentRows - batch.rowsDone
  const secondsLeft = speed !== undefined && speed > 0 && left !== undefined && left > 0 ? left / speed : undefined
  return {
    points,
    stretches: stretchesOf(batch, samples, { state, end }),
    from: first.at,
    to,
    total: batch.extentRows,
    forecast,
    speed,
    secondsLeft,
  }
}

/** The line to the total. It takes at most half of the chart's width: a batch that has just begun needs room for what it did. */
function forecastOf(
  { done }: Point,
  { speed, total, from, now }: { speed: number | undefined; total: number | null; from: number; now: number },
): Course['forecast'] {
  if (speed === undefined || speed <= 0 || total === null || total <= done) return undefined
  const at = Math.min(now + ((total - done) / speed) * 1000, now + (now - from))
  return { at, done: Math.min(total, done + (speed * (at - now)) / 1000) }
}

function stretchesOf(
  { activeAt, pausedAt }: Pick<SeenBatch, 'activeAt' | 'pausedAt'>,
  samples: readonly SeenSample[],
  { state, end }: { state: BatchState; end: number },
): Stretch[] {
  const found: Stretch[] = []
  samples.forEach((sample, index) => {
    if (sample.state === 'RUNNING') return
    const to = Math.min(samples[index + 1]?.at ?? end, end)
    const before = found.at(-1)
    if (before?.state === sample.state && before.to === sample.at) before.to = to
    else if (to > sample.at) found.push({ state: sample.state, from: sample.at, to, isNow: false })
  })
  const last = found.at(-1)
  const isKnown = last?.to === end && last.state === state
  // A stall that no scheduler has noted has no point.
  const since = state === 'PAUSED' ? pausedAt : state === 'STALLED' ? activeAt + BATCH_LIFE.stalledMs : null
  if ((state === 'PAUSED' || state === 'STALLED') && !isKnown && since !== null && since < end)
    found.push({ state, from: Math.max(since, last?.to ?? 0), to: end, isNow: true })
  else if (isKnown && last) last.isNow = true
  return found
}
