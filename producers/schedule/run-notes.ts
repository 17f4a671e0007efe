// Counts and logs a late or failed run, for the operator only.
import type { Run, RunState } from '../../src/store/report/schedule-runs.ts'
import type { ScheduleDeps } from './deps.ts'

type NoteDeps = Pick<ScheduleDeps, 'metrics' | 'log'>

export function noteLate(run: Run, { metrics, log }: NoteDeps): void {
  metrics.runs.inc({ outcome: 'late' })
  log.warn({ ...about(run), state: run.state }, 'a scheduled run is late')
}

const OUTCOMES: Partial<Record<RunState, string>> = { SUCCEEDED: 'succeeded', FAULTED: 'faulted', FAILED: 'failed' }

/** Records the end of a run whose row has just changed. */
export function noteEnd(run: Run, { metrics, log }: NoteDeps): void {
  const outcome = OUTCOMES[run.state]
  if (outcome === undefined) return
  metrics.runs.inc({ outcome })
  if (outcome === 'succeeded') return
  const again = run.state === 'FAULTED'
  // Further failed attempts of the same run are counted but not logged.
  if (again && run.faults > 1) return
  log.warn({ ...about(run), reason: run.reason }, `a scheduled run failed${again ? '; it is tried again' : ''}`)
}

function about({ scheduleId, businessDate, entityId, dueAt }: Run): Record<string, unknown> {
  return { schedule: scheduleId, date: businessDate, entity: entityId, due: new Date(dueAt).toISOString() }
}
