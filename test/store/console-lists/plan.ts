// What PostgreSQL would do for a statement of the console, and a database of its own to ask it.
import { openLog } from '../../../src/log.ts'
import { type Db, openStore, type Statement, type Store } from '../../../src/store/pool.ts'
import { freshDatabase } from '../../support/postgres.ts'
import { until } from '../../support/until.ts'

export interface Lists {
  /** With the rights of the console. */
  store: Store
  /** Fills it. */
  owner: Store
  close(): Promise<void>
}

/** A fresh database, as its owner and as the console sees it. */
export async function openLists(): Promise<Lists> {
  const database = await freshDatabase()
  const log = openLog('silent')
  const owner = openStore(database.url, { log, connectionsMax: 1 })
  const store = openStore(database.url, { log, connectionsMax: 2, role: 'tokenmill_console' })
  return {
    store,
    owner,
    async close() {
      await store.close()
      await owner.close()
      await database.drop()
    },
  }
}

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

/** Throws unless `read` ends within `ms` at least once: the quickest counts, because the machine may be busy. */
export async function within(ms: number, read: () => Promise<void>): Promise<void> {
  await until(
    async () => {
      const began = performance.now()
      await read()
      return performance.now() - began < ms
    },
    { what: `an answer within ${ms} ms` },
  )
}
