// How a schedule and a run are, by the present time. What no scheduler began is found here by the schedule's own dates, because the
// store has no row of it. The limits are those of `tokenmill status`.
import { datesWithoutRun } from '../../../src/job/schedule/business-dates.ts'
import { isZone } from '../../../src/job/schedule/zone-time.ts'
import type { ListedRun } from '../../../src/store/console/runs.ts'
import type { SeenSchedule, Trouble, TroubleSince } from '../../../src/store/console/schedules.ts'
import type { ShownState } from '../state-mark.ts'

/** A failure is a matter for somebody for a day, in ms. */
const FAILED_MS = 24 * 3_600_000

export interface Seeing {
  /** ms since the epoch. */
  now: number
  /** An open run counts as late after this many ms. */
  lateMs: number
  /** A scheduler was heard just now. */
  isScheduled: boolean
  /** A worker that makes reports was heard just now. */
  isWorked: boolean
}

/** What the store is asked for, so that the state of a schedule is the same on each page. */
export function troubleSince({ now, lateMs }: Seeing): TroubleSince {
  return { dueBefore: now - lateMs, failedSince: now - FAILED_MS }
}

export interface ScheduleState {
  state: ShownState
  /** ms since the epoch; undefined: no moment belongs to it. */
  since?: number | undefined
  /** Needs somebody: 0 most, 3 nobody. */
  rank: number
}

export function stateOfSchedule(schedule: SeenSchedule & Trouble, { now, lateMs, isScheduled }: Seeing): ScheduleState {
  const { removedAt, pausedAt, lateSince, failedAt, hasEntities } = schedule
  if (removedAt !== null) return { state: 'REMOVED', since: removedAt, rank: 3 }
  const hasZone = isZone(schedule.zone)
  const [missed] = hasEntities && hasZone ? datesWithoutRun(schedule, now - lateMs) : []
  if (missed) return { state: 'MISSED', since: missed.dueAt, rank: 0 }
  if (lateSince !== null) return { state: 'LATE', since: lateSince, rank: 0 }
  if (failedAt !== null) return { state: 'FAILED', since: failedAt, rank: 1 }
  if (pausedAt !== null) return { state: 'PAUSED', since: pausedAt, rank: 2 }
  // When it is due isn't known. That doesn't end by itself.
  if (!hasZone) return { state: 'UNKNOWN', rank: 1 }
  return { state: isScheduled ? 'ON TIME' : 'UNKNOWN', rank: 3 }
}

/** An open run that should have ended is LATE, whatever it waits for, unless somebody paused its schedule before it began. */
export function stateOfRun({ state, dueAt, endedAt, waitsForResume }: ListedRun, { now, lateMs }: Seeing): ShownState {
  if (waitsForResume) return 'PAUSED'
  return endedAt === null && dueAt <= now - lateMs ? 'LATE' : state
}
