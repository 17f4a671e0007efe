// The metrics of scheduled runs.
import type { MetricsRegistry } from '../../src/metrics.ts'

export type ScheduleMetrics = ReturnType<typeof openScheduleMetrics>

export function openScheduleMetrics({ counter, gauge }: MetricsRegistry) {
  return {
    runs: counter('schedule_runs_total', 'Scheduled runs, by how an attempt at them ended.', {
      outcome: ['succeeded', 'faulted', 'failed', 'late'],
    }),
    lateRuns: gauge('schedule_late_runs', 'Scheduled runs that are late and have not ended.'),
    oldestDue: gauge('schedule_oldest_due_seconds', 'Time since the oldest run that has not ended became due.'),
  }
}
