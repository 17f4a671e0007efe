// What PostgreSQL would do for a statement of the console.
import type { Db, Statement } from '../../../src/store/pool.ts'

/** The plan of the last statement that `read` makes; nothing is run. */
export async function explaining(store: Db, read: (db: Db) => Promise<unknown>): Promise<string> {
  let plan = ''
  await read({
    async query<R>({ text, values }: Statement) {
      const { rows } = await store.query<{ 'QUERY PLAN': string }>({ text: `explain ${text}`, values: values ?? [] })
      plan = rows.map(row => row['QUERY PLAN']).join('\n')
      return { rows: [] as R[], count: 0 }
    },
  })
  return plan
}
