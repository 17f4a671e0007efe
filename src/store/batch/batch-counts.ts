// How many batches there are, by state, for metrics. What a batch's state is follows from its row alone.
import type { Db } from '../pool.ts'
import type { Batch } from './batches.ts'

const STATES: readonly Batch['state'][] = ['RUNNING', 'CANCELLED']

/** Every state, those without a batch too. */
export async function countByState(db: Db): Promise<{ state: Batch['state']; batches: number }[]> {
  const { rows } = await db.query<{ state: Batch['state']; batches: number }>({
    text: 'select state, count(*) as batches from tokenmill.batch group by state',
  })
  return STATES.map(state => ({ state, batches: rows.find(row => row.state === state)?.batches ?? 0 }))
}
