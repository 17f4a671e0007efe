// What reports and schedules have in the database.
import { ALL, type Tables } from '../tables.ts'

export const REPORTS_TABLES: Tables = {
  sql: 'reports',
  rights: {
    report: ALL,
    // People pause and resume it in the console.
    schedule: `select,
  update (paused_at, resumed_at)`,
    schedule_run: ALL,
  },
}
