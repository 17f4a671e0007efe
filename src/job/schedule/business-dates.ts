// Finds the business dates of a schedule that are due. A business date is the day (UTC) that a report is about. Its run
// is due when the zone's clock shows the schedule's time on the day after, and never before the business date has ended
// in UTC. It reads no clock and no store.
import { firstMoment } from './zone-time.ts'

export interface Timing {
  /** `HH:MM`, local time in the zone. */
  time: string
  /** An IANA time zone. */
  zone: string
}

export interface DueDate {
  /** `YYYY-MM-DD`. */
  businessDate: string
  /** ms since the epoch. */
  dueAt: number
}

/** Since when a schedule runs, and whether it does. All times are ms since the epoch. */
export interface Going extends Timing {
  kind: 'report' | 'token-expiry'
  createdAt: number
  /** Null: it isn't paused. */
  pausedAt: number | null
  /** The last time that it was resumed; null: never. */
  resumedAt: number | null
  /** The latest date that has a run, `YYYY-MM-DD`. */
  newest: string | null
}

const DAY_MS = 86_400_000
/** A scheduler that was down makes up for this many dates; an operator requests reports of older dates. */
export const CATCH_UP_DATES = 7

export const dateOf = (at: number): string => new Date(at).toISOString().slice(0, 10)

export const dayAfter = (date: string, days = 1): string => dateOf(Date.parse(date) + days * DAY_MS)

export function dueAt(businessDate: string, { time, zone }: Timing): number {
  const next = dayAfter(businessDate)
  return Math.max(firstMoment(next, time, zone), Date.parse(next))
}

/**
 * The dates that became due after `since` and by `now`, are later than `newest`, and are among the last seven; oldest
 * first.
 */
export function dueDates(timing: Timing, since: number, newest: string | null, now: number): DueDate[] {
  const today = Date.parse(dateOf(now))
  const dates = Array.from({ length: CATCH_UP_DATES + 1 }, (_, index) =>
    dateOf(today - (CATCH_UP_DATES + 1 - index) * DAY_MS),
  )
  return dates
    .filter(date => newest === null || date > newest)
    .map(businessDate => ({ businessDate, dueAt: dueAt(businessDate, timing) }))
    .filter(due => due.dueAt > since && due.dueAt <= now)
    .slice(-CATCH_UP_DATES)
}

/**
 * The dates of a schedule that are due and have no run yet. A paused schedule has none. What was missed while it was paused is due
 * from the moment at which it was resumed.
 */
export function datesWithoutRun(schedule: Going, now: number): DueDate[] {
  const { kind, createdAt, pausedAt, resumedAt, newest } = schedule
  if (pausedAt !== null) return []
  const due = dueDates(schedule, createdAt, newest, now)
    .map(date => ({ ...date, dueAt: Math.max(date.dueAt, resumedAt ?? 0) }))
    .filter(date => date.dueAt <= now)
  // Only the latest date, because the sweep of a date also finds the tokens that earlier sweeps missed.
  return kind === 'token-expiry' ? due.slice(-1) : due
}

/** The next date that becomes due after `now`. */
export function nextDue(timing: Timing, now: number): DueDate {
  return nextDues(timing, now, 1)[0] as DueDate
}

/** The next `count` dates that become due after `now`, the earliest first. */
export function nextDues(timing: Timing, now: number, count: number): DueDate[] {
  const found: DueDate[] = []
  for (let date = dayAfter(dateOf(now), -2); found.length < count; date = dayAfter(date)) {
    const due = { businessDate: date, dueAt: dueAt(date, timing) }
    if (due.dueAt > now) found.push(due)
  }
  return found
}
