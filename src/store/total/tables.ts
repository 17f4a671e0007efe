// What sign-off has in the database.
import { ALL, type Tables } from '../tables.ts'

export const SIGN_OFF_TABLES: Tables = {
  sql: 'sign-off',
  rights: {
    manifest_key: `select,
  update`,
    manifest_part: `select, insert,
  update`,
    manifest_run: ALL,
    manifest_total: `select,
  update, delete`,
  },
}
