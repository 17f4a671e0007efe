// Whether an act is for a schedule in its present state. The deed decides by it under the schedule's lock, for commands and for people,
// and a page offers by it.

const NEEDS = {
  'schedule.run': { isPaused: false, isOfAnyKind: true },
  'schedule.pause': { isPaused: false, isOfAnyKind: false },
  'schedule.resume': { isPaused: true, isOfAnyKind: false },
} as const
export type ScheduleAction = keyof typeof NEEDS

/** Why the act isn't for this schedule; undefined: it is. `no_report`: it isn't one of reports, and never pauses. */
export function scheduleRefusal(
  action: ScheduleAction,
  { kind, removedAt, pausedAt }: { kind: string; removedAt: number | null; pausedAt: number | null },
): 'no_schedule' | 'no_report' | 'paused' | 'not_paused' | undefined {
  const { isPaused, isOfAnyKind } = NEEDS[action]
  if (removedAt !== null) return 'no_schedule'
  if (!isOfAnyKind && kind !== 'report') return 'no_report'
  if (isPaused) return pausedAt === null ? 'not_paused' : undefined
  return pausedAt === null ? undefined : 'paused'
}
