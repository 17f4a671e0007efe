// Acts of a person on a schedule: their parameters, and what the person saw. The console and the worker compute it from what each
// of them reads in the store.
import { hash } from 'node:crypto'
import { z } from 'zod'

/** To pause and to resume: the subject is the schedule's id. */
export const ScheduleParameters = z.strictObject({})
/** `date`: the reported day (UTC). */
export const ScheduleRunParameters = z.strictObject({ date: z.iso.date() })

/** How a schedule is to be seen by who pauses or resumes it. Times in ms since the epoch. */
export function seenOfSchedule(schedule: { removedAt: number | null; pausedAt: number | null }): string {
  if (schedule.removedAt !== null) return 'REMOVED'
  return schedule.pausedAt === null ? 'GOING' : `PAUSED ${schedule.pausedAt}`
}

interface SeenOfRun {
  entityId: string
  state: string
  dueAt: number
}

/** The runs of one date, as who runs it sees them. */
export function seenOfRuns(runs: readonly SeenOfRun[]): string {
  if (runs.length === 0) return 'NONE'
  const lines = runs.map(({ entityId, state, dueAt }) => `${entityId} ${state} ${dueAt}`).sort()
  return hash('sha256', lines.join('\n'), 'base64url')
}
