// Measures the load of the store, by which a re-encryption sets its pace. How far replicas are behind is read by a
// function that runs as the database's owner, because the workers' user may not see it.
import type { Db } from '../pool.ts'
import { SEALED_COLUMNS, type SealedName } from './sealed-columns.ts'

export interface StoreLoad {
  /** The lag of the slowest replica, ms; null without replicas, or if the store's owner may not see it (pg_read_all_stats). */
  replicaLagMs: number | null
  /** The position in the server's WAL, bytes: the difference of two positions is what was written between. */
  walBytes: number
  /** Rows of the column's table, by the server's estimate. Dead rows are those that VACUUM hasn't removed yet. */
  rowsLive: number
  rowsDead: number
}

export async function measureLoad(db: Db, name: SealedName): Promise<StoreLoad | undefined> {
  const { rows } = await db.query<StoreLoad>({
    name: 'store-load',
    text: `select
  tokenmill.replica_lag_ms() as "replicaLagMs",
  (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::float8 as "walBytes",
  n_live_tup as "rowsLive",
  n_dead_tup as "rowsDead"
from pg_stat_user_tables
where relid = $1::regclass`,
    values: [`tokenmill.${SEALED_COLUMNS[name].table}`],
  })
  return rows[0]
}
