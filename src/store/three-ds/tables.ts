// What 3-D Secure has in the database.
import { ALL, type Tables } from '../tables.ts'

export const THREE_DS_TABLES: Tables = {
  sql: 'three-ds',
  rights: {
    authentication: ALL,
    // Its key is sealed anew, and a former one is erased.
    threeds_contract: `select,
  update (key_sealed, key_version, former_key_sealed, former_key_version, former_until)`,
    threeds_jwt: ALL,
  },
}
