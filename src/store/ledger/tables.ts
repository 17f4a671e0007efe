// What the ledger has in the database.
import type { Tables } from '../tables.ts'

export const LEDGER_TABLES: Tables = {
  sql: 'ledger',
  rights: {
    ledger_uid: 'select, insert',
    order: `select, insert,
  update`,
    transaction: 'select, insert',
  },
}
