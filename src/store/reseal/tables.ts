// What the turning of keys has in the database.
import type { Tables } from '../tables.ts'

export const KEYS_TABLES: Tables = {
  sql: 'keys',
  rights: {
    // Retention removes what has expired.
    confirmation: 'select, delete',
    key_notice: 'select, insert',
    reseal: `select,
  update`,
  },
}
