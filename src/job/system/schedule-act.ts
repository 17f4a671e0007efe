// Acts of a person on a schedule, and what the person saw of it. The console and the worker compute it from what each of them reads in
// the store. src/acts/schedule.ts does the acts, for commands too.
import { hash } from 'node:crypto'
import { z } from 'zod'
import type { ScheduleAction } from '../schedule/refusal.ts'
import { type ActRow, noFacts } from './act-row.ts'

/** To pause and to resume: the subject is the schedule's id. */
const ScheduleParameters = z.strictObject({})
/** `date`: the reported day (UTC). */
export const ScheduleRunParameters = z.strictObject({ date: z.iso.date() })

interface ScheduleActRow extends ActRow {
  /** On the page of the schedule. */
  link: string
  /** What the page says where `scheduleRefusal` says that it is paused, or isn't. */
  instead: string
}

const COMMON = {
  on: 'schedule',
  noun: 'a schedule',
  roles: ['OPERATOR', 'ADMIN'],
  reach: 'sight',
  isFinal: false,
  isSeen: true,
} as const satisfies Partial<ActRow>

export const SCHEDULE_ACTS = {
  'schedule.run': {
    ...COMMON,
    verb: 'Run',
    parameters: ScheduleRunParameters,
    facts: ({ parameters }) => ({ date: parameters['date'] }),
    link: 'Run a day now',
    instead: 'It is paused, so nothing runs. Resume it first.',
  },
  'schedule.pause': {
    ...COMMON,
    verb: 'Pause',
    parameters: ScheduleParameters,
    facts: noFacts,
    link: 'Pause',
    instead: 'It is paused already.',
  },
  'schedule.resume': {
    ...COMMON,
    verb: 'Resume',
    parameters: ScheduleParameters,
    facts: noFacts,
    link: 'Resume',
    instead: 'It is not paused, so there is nothing to resume.',
  },
} as const satisfies Record<ScheduleAction, ScheduleActRow>

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
