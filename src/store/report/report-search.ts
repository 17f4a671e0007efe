// `GET /reports`: finds records of reports by a search expression, page by page. The entities that a caller may see are
// a separate condition, which no expression can change. reports.ts makes and changes reports.
import { Fault } from '../../errors.ts'
import { REPORT_STATUSES } from '../../job/choices.ts'
import { MIME_TYPES, REPORT_TYPES } from '../../job/report.ts'
import { compile, type Fields } from '../../rsql/compile.ts'
import { type Operator, parse } from '../../rsql/parse.ts'
import { isParseError, type ParseError, parseError } from '../../rsql/parse-error.ts'
import { type Db, limitStatements, type Store } from '../pool.ts'
import { COLUMNS, type StoredReport } from './reports.ts'

const EQUAL: readonly Operator[] = ['==', '=in=']
const CHOICE: readonly Operator[] = ['==', '=in=', '=out=']
const TEXT: readonly Operator[] = ['==', '=regex=', '=in=', '=out=']
const DATES: readonly Operator[] = ['==', '!=', '<', '<=', '>', '>=', '=in=', '=out=']

const day = (name: string) => ({ type: 'day', sql: `report_parameter->>'${name}'`, operators: DATES }) as const
const parameterText = (name: string) =>
  ({ type: 'text', sql: `report_parameter->>'${name}'`, operators: TEXT }) as const

/** A parameter of a refused report may hold any text, so a text that isn't a UUID becomes null before it is cast. */
const parameterUid = (name: string) => {
  const value = `report_parameter->>'${name}'`
  const sql = `case when ${value} ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then (${value})::uuid end`
  return { type: 'uuid', sql: `(${sql})`, operators: EQUAL } as const
}

/**
 * The fields that can be searched. None of our reports has the parameters `batchUUID` and `clearingReference`; clients
 * of this interface search by them, and shall get an empty list instead of an error.
 */
export const REPORT_FIELDS = {
  createdOn: { type: 'moment', sql: 'created_on', operators: DATES },
  modifiedOn: { type: 'moment', sql: 'modified_on', operators: DATES },
  'reportParameter.clearingDate': day('clearingDate'),
  'reportParameter.invoicePeriodFrom': day('invoicePeriodFrom'),
  'reportParameter.invoicePeriodTo': day('invoicePeriodTo'),
  'reportParameter.reportableDay': day('reportableDay'),
  'reportParameter.reportableDayTo': day('reportableDayTo'),
  'reportParameter.batchId': parameterText('batchId'),
  'reportParameter.batchUUID': parameterUid('batchUUID'),
  'reportParameter.clearingReference': parameterText('clearingReference'),
  status: { type: 'text', sql: 'status', operators: CHOICE, words: REPORT_STATUSES },
  mimeType: { type: 'text', sql: 'mime_type', operators: CHOICE, words: MIME_TYPES },
  reportType: { type: 'text', sql: 'report_type', operators: CHOICE, words: REPORT_TYPES },
  reportUid: { type: 'uuid', sql: 'report_uid', operators: TEXT },
  reportEntityUid: { type: 'uuid', sql: 'report_entity_uid', operators: EQUAL },
  fileName: { type: 'text', sql: 'file_name', operators: TEXT, wildcard: true },
} as const satisfies Fields

export const ORDER_CRITERIA = {
  createdOn: 'created_on',
  modifiedOn: 'modified_on',
  status: 'status',
  mimeType: 'mime_type',
  reportType: 'report_type',
  reportUid: 'report_uid',
} as const satisfies Record<string, string>
export type OrderCriterion = keyof typeof ORDER_CRITERIA

export interface ReportQuery {
  /** The entities that the caller may see, the caller's own first; `all` for an operator. */
  entities: readonly string[] | 'all'
  /** An RSQL expression; undefined or empty: everything. */
  search?: string | undefined
  /** The number of the page, from 1. */
  pageNumber: number
  pageSize: number
  orderBy: 'ASC' | 'DESC'
  orderCriteria: OrderCriterion
}

interface ReportPage {
  /** The number of reports on all pages together. */
  totals: number
  reports: StoredReport[]
}

/**
 * The time limit of a search, in ms: the size of patterns is limited, and this limits the rows that they are compared
 * with.
 */
const SEARCH_MS_MAX = 2_000

/**
 * One page of reports. If the expression doesn't name `reportEntityUid`, only the caller's own entity is searched.
 * Returns a ParseError for a wrong expression; throws `Fault('deadline')` if the store takes too long.
 */
export async function search(store: Store, query: ReportQuery): Promise<ReportPage | ParseError> {
  const condition = conditionOf(query)
  if (isParseError(condition)) return condition
  const { text: where, values } = condition
  return store
    .transaction(async db => {
      // Both statements see one snapshot, so page and total agree.
      await db.query({ text: 'set transaction isolation level repeatable read, read only' })
      await limitStatements(db, SEARCH_MS_MAX)
      const counted = await db.query<{ totals: number }>({
        text: `select count(*) as totals
from tokenmill.report
where ${where}`,
        values,
      })
      const totals = counted.rows[0]?.totals ?? 0
      return { totals, reports: await pageOf(db, query, condition, totals) }
    })
    .catch(error => {
      if (isBadPattern(error)) return parseError('a pattern is not taken by the store', 0)
      throw error
    })
}

interface Where {
  text: string
  values: unknown[]
}

function conditionOf({ entities, search: text = '' }: ReportQuery): Where | ParseError {
  const expression = text === '' ? undefined : parse(text)
  if (isParseError(expression)) return expression
  // If the search is limited to entities, `$1` is the list of them.
  const filter = expression && compile(expression, REPORT_FIELDS, entities === 'all' ? 1 : 2)
  if (isParseError(filter)) return filter
  if (entities === 'all') return { text: filter?.text ?? 'true', values: filter?.values ?? [] }
  const visible = filter?.fields.has('reportEntityUid') ? entities : entities.slice(0, 1)
  // Most clients have one entity; for `=` an index returns the rows in the requested order.
  const whose = visible.length === 1 ? { is: '= $1::uuid', of: visible[0] } : { is: '= any($1::uuid[])', of: visible }
  return {
    text: `report_entity_uid ${whose.is}${filter ? ` and (${filter.text})` : ''}`,
    values: [whose.of, ...(filter?.values ?? [])],
  }
}

async function pageOf(db: Db, query: ReportQuery, where: Where, totals: number): Promise<StoredReport[]> {
  const { pageNumber, pageSize, orderBy, orderCriteria } = query
  const offset = (pageNumber - 1) * pageSize
  // A page beyond the last one is empty, however far.
  if (offset >= totals) return []
  const direction = orderBy === 'ASC' ? 'asc' : 'desc'
  const column = ORDER_CRITERIA[orderCriteria]
  // Equal rows are sorted by their uid, so that no page repeats or misses one.
  const order = column === 'report_uid' ? `report_uid ${direction}` : `${column} ${direction}, report_uid ${direction}`
  const { rows } = await db.query<StoredReport>({
    text: `select ${COLUMNS}
from tokenmill.report
where ${where.text}
order by ${order}
limit ${Math.trunc(pageSize)}
offset ${Math.trunc(offset)}`,
    values: where.values,
  })
  return rows
}

/** SQLSTATE 2201B: the pattern passed our check but PostgreSQL refuses it. */
function isBadPattern(error: unknown): boolean {
  return error instanceof Fault && (error.cause as { code?: unknown } | undefined)?.code === '2201B'
}
