// The partitions of the ledger, one per month. A month's partition is made when its first line comes, because a ledger
// may begin years ago. It is made as a table and then attached, so that transactions on other months don't wait.
import { texts } from '../columns.ts'
import type { Db, Store } from '../pool.ts'
import { PARTITION_LOCK } from '../schema.ts'

/** Makes sure that there is a partition for each of these months (`2026-03`). */
export async function ensureMonths(store: Store, months: readonly string[]): Promise<void> {
  if ((await findMissing(store, months)).length === 0) return
  await store.transaction(async db => {
    await db.query({ text: PARTITION_LOCK })
    // Searched again, because only now no other transaction can be making the same partitions.
    for (const month of await findMissing(db, months)) {
      for (const text of statementsOf(month)) await db.query({ text })
    }
  })
}

async function findMissing(db: Db, months: readonly string[]): Promise<string[]> {
  const { rows } = await db.query<{ month: string }>({
    name: 'ledger-months',
    text: `select month from unnest($1::text[]) as month where not exists (
  select from pg_inherits where inhparent = 'tokenmill.transaction'::regclass
    and inhrelid = to_regclass('tokenmill.transaction_' || replace(month, '-', ''))
)`,
    values: [texts(months)],
  })
  return rows.map(row => row.month)
}

function statementsOf(month: string): string[] {
  const [year, number] = month.split('-').map(Number)
  if (year === undefined || number === undefined) throw new Error(`broken law: ${month} is a month`)
  const next = new Date(Date.UTC(year, number, 1)).toISOString().slice(0, 7)
  const name = `tokenmill.transaction_${month.replace('-', '')}`
  return [
    `create table if not exists ${name} (like tokenmill.transaction including defaults including constraints)`,
    `alter table tokenmill.transaction attach partition ${name} for values from ('${month}-01 00:00+00') to ('${next}-01 00:00+00')`,
  ]
}
