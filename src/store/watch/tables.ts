// What operating has in the database.
import { ALL, type Tables } from '../tables.ts'

export const OPERATE_TABLES: Tables = {
  sql: 'operate',
  rights: {
    // The scheduler says here how the installation is.
    watch_check: ALL,
    watch_minute: ALL,
    watch_queue: ALL,
  },
}
