// What the product has in the database, in the order in which a migration makes it.
import { AUDIT_TABLES } from './access/audit-tables.ts'
import { CONSOLE_TABLES } from './console/tables.ts'
import { CORE_TABLES } from './core-tables.ts'
import { LEDGER_TABLES } from './ledger/tables.ts'
import { NETWORKS_TABLES } from './provider/tables.ts'
import { REPORTS_TABLES } from './report/tables.ts'
import { KEYS_TABLES } from './reseal/tables.ts'
import type { Tables } from './tables.ts'
import { THREE_DS_TABLES } from './three-ds/tables.ts'
import { SIGN_OFF_TABLES } from './total/tables.ts'
import { OPERATE_TABLES } from './watch/tables.ts'

export const TABLES: readonly Tables[] = [
  CORE_TABLES,
  KEYS_TABLES,
  AUDIT_TABLES,
  OPERATE_TABLES,
  NETWORKS_TABLES,
  THREE_DS_TABLES,
  LEDGER_TABLES,
  REPORTS_TABLES,
  SIGN_OFF_TABLES,
  CONSOLE_TABLES,
]
