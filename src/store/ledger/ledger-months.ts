// The partitions of the ledger, one per month. A month's partition is made when its first line comes, because a ledger
// may begin years ago. A database function makes it, because the database user of the workers may not create tables.
import { texts } from '../columns.ts'
import type { Db, Store } from '../pool.ts'
import { PARTITION_LOCK } from '../schema.ts'

/** Makes sure that there is a partition for each of these months (`2026-03`). */
export async function ensureMonths(store: Store, months: readonly string[]): Promise<void> {
  if ((await findMissing(store, months)).length === 0) return
  await store.transaction(async db => {
    await db.query({ text: PARTITION_LOCK })
    // Searched again, because only now no other transaction can be making the same partitions.
    for (const month of await findMissing(db, months))
      await db.query({ text: 'select tokenmill.make_month($1)', values: [`${month}-01`] })
  })
}

async function findMissing(db: Db, months: readonly string[]): Promise<string[]> {
  const { rows } = await db.query<{ month: string }>({
    name: 'ledger-months',
    text: `select month
from unnest($1::text[]) as month
where not exists (
  select
  from pg_inherits
  where inhparent = 'tokenmill.transaction'::regclass
    and inhrelid = to_regclass('tokenmill.transaction_' || replace(month, '-', ''))
)`,
    values: [texts(months)],
  })
  return rows.map(row => row.month)
}
