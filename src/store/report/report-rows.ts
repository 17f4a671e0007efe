// Reads the rows of reports through server-side cursors in one snapshot, so that memory doesn't grow with their number.
// Each query returns lines, group sums and totals over the same rows. PostgreSQL computes the sums, so that the lines
// can be compared with them. All values are texts.
import type { Filter, QueryName, Row } from '../../report/definition.ts'
import type { Db, Store } from '../pool.ts'
import { BATCH } from '../report-queries/batch.ts'
import { COMMISSION, INVOICE, SETTLEMENT, TRANSACTIONS } from '../report-queries/ledger.ts'
import type { RowsQuery } from '../report-queries/query.ts'
import { SCHEME_TOKEN } from '../report-queries/scheme-token.ts'
import { TOKEN_ACTIVITY } from '../report-queries/token-activity.ts'

const QUERIES = {
  settlement: SETTLEMENT,
  transactions: TRANSACTIONS,
  commission: COMMISSION,
  invoice: INVOICE,
  'token-activity': TOKEN_ACTIVITY,
  'scheme-token': SCHEME_TOKEN,
  batch: BATCH,
} as const satisfies Record<QueryName, RowsQuery>

interface Snapshot {
  /** When the snapshot was taken, ms since the epoch. */
  asOf: number
  /** The snapshot's date, `YYYY-MM-DD` in UTC. */
  today: string
  /** Since which day there is all that the report counts; null: it counts nothing that is removed with time. */
  since: string | null
  totals: Row[]
  groups: AsyncIterable<Row[]>
  lines: AsyncIterable<Row[]>
}

const PAGE_ROWS = 500

/** Runs `work` in one read-only snapshot. A reader may read from the two streams alternately. */
export function withRows<T>(
  store: Store,
  name: QueryName,
  entityId: string,
  filter: Filter,
  work: (snapshot: Snapshot) => Promise<T>,
): Promise<T> {
  const { values: names, ...query }: RowsQuery = QUERIES[name]
  const values = [entityId, ...names.map(each => filter[each])]
  return store.transaction(async db => {
    await db.query({ text: 'set transaction isolation level repeatable read, read only' })
    await db.query({ text: `set local work_mem = '64MB'` })
    const { rows } = await db.query<{ asOf: number; today: string }>({
      text: 'select now() as "asOf", now()::date as today',
    })
    const since = query.since === undefined ? undefined : await db.query<Row>({ text: query.since })
    const totals = await db.query<Row>({ text: query.totals, values })
    await db.query({ text: `declare report_groups no scroll cursor for ${query.groups}`, values })
    await db.query({ text: `declare report_lines no scroll cursor for ${query.lines}`, values })
    return work({
      asOf: rows[0]?.asOf ?? 0,
      today: rows[0]?.today ?? '',
      since: since?.rows[0]?.['since'] ?? null,
      totals: totals.rows,
      groups: pages(db, 'report_groups'),
      lines: pages(db, 'report_lines'),
    })
  })
}

async function* pages(db: Db, cursor: 'report_groups' | 'report_lines'): AsyncGenerator<Row[], void, void> {
  for (;;) {
    const { rows } = await db.query<Row>({ text: `fetch ${PAGE_ROWS} from ${cursor}` })
    if (rows.length > 0) yield rows
    if (rows.length < PAGE_ROWS) return
  }
}
