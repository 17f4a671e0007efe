// Orders. Sets of orders are saved at once, and the later modification wins. A search is always within the entities that
// its caller gives; no parameter can widen it.
import type { IngestedOrder, Order } from '../../orders/order.ts'
import type { OrderFilter, OrderQuery } from '../../orders/query.ts'
import { type Column, plains, rowSet } from '../columns.ts'
import { type Db, limitStatements, type Statement, type Store } from '../pool.ts'

const column = (name: string, type: string, text: Column<IngestedOrder>['text'], plain: boolean) => ({
  name,
  type,
  text,
  plain,
})
const at = (moment: string) => new Date(moment).toISOString()

const WRITTEN: readonly Column<IngestedOrder>[] = [
  column('order_id', 'text', o => o.orderId, false),
  column('order_reference', 'text', o => o.orderReference, false),
  column('status', 'text', o => o.status, true),
  column('order_type', 'text', o => o.orderType, true),
  column('created_user_uid', 'uuid', o => o.createdUserUid, true),
  column('created_by', 'text', o => o.createdBy, false),
  column('created_date', 'timestamptz', o => at(o.createdDate), true),
  column('modified_user_uid', 'uuid', o => o.modifiedUserUid, true),
  column('modified_by', 'text', o => o.modifiedBy, false),
  column('modified_date', 'timestamptz', o => at(o.modifiedDate), true),
  column('entity_uid', 'uuid', o => o.entityUid, true),
  column('merchant_company', 'text', o => o.merchantCompany ?? null, false),
  column('merchant_company_entity_uid', 'uuid', o => o.merchantCompanyEntityUid ?? null, true),
  column('customer_entity_uid', 'uuid', o => o.customerEntityUid ?? null, true),
]
const NAMES = WRITTEN.map(({ name }) => name).join(', ')
const SET = WRITTEN.filter(({ name }) => name !== 'order_id')
  .map(({ name }) => `${name} = excluded.${name}`)
  .join(', ')

interface Saved {
  created: number
  updated: number
}

/**
 * Saves orders with different ids. An existing order is replaced only if the new data were modified later. The orders
 * are sorted, so that two transactions with the same orders lock them in the same order.
 */
export async function saveAll(db: Db, orders: readonly IngestedOrder[]): Promise<Saved> {
  if (orders.length === 0) return { created: 0, updated: 0 }
  const sorted = orders.toSorted((a, b) => (a.orderId < b.orderId ? -1 : 1))
  const { source, values } = rowSet(WRITTEN, sorted)
  const { rows } = await db.query<{ created: boolean }>({
    text: `insert into tokenmill.order as o (${NAMES})
select ${NAMES}
from ${source}
on conflict on constraint order_pkey do update
set ${SET}, ingested_at = now()
where o.modified_date < excluded.modified_date
returning o.xmax = 0 as created`,
    values,
  })
  const created = rows.filter(row => row.created).length
  return { created, updated: rows.length - created }
}

type Row = Omit<Order, 'createdDate' | 'modifiedDate' | 'merchantCompanyEntityUid' | 'customerEntityUid'> & {
  /** ms since the epoch. */
  createdDate: number
  modifiedDate: number
  merchantCompanyEntityUid: string | null
  customerEntityUid: string | null
}

const SHOWN = `
  order_id as "orderId",
  order_reference as "orderReference",
  status,
  order_type as "orderType",
  created_user_uid as "createdUserUid",
  created_by as "createdBy",
  created_date as "createdDate",
  modified_user_uid as "modifiedUserUid",
  modified_by as "modifiedBy",
  modified_date as "modifiedDate",
  entity_uid as "entityUid",
  merchant_company_entity_uid as "merchantCompanyEntityUid",
  customer_entity_uid as "customerEntityUid"`

function orderOf({ merchantCompanyEntityUid, customerEntityUid, ...row }: Row): Order {
  return {
    ...row,
    createdDate: new Date(row.createdDate).toISOString(),
    modifiedDate: new Date(row.modifiedDate).toISOString(),
    ...(merchantCompanyEntityUid !== null && { merchantCompanyEntityUid }),
    ...(customerEntityUid !== null && { customerEntityUid }),
  }
}

interface OrderPage {
  /** The number of orders on all pages together. */
  totalItems: number
  orders: Order[]
}

/** The time limit of a search, in ms. */
const SEARCH_MS_MAX = 2_000

/** One page of these entities' orders that match `query`. Throws `Fault('deadline')` if the search takes too long. */
export function search(store: Store, entities: readonly string[], query: OrderQuery): Promise<OrderPage> {
  return store.transaction(async db => {
    // Both statements see one snapshot, so page and total agree.
    await db.query({ text: 'set transaction isolation level repeatable read, read only' })
    await limitStatements(db, SEARCH_MS_MAX)
    const counted = await db.query<{ total: number }>(countStatement(entities, query))
    const totalItems = counted.rows[0]?.total ?? 0
    // A page beyond the last one is empty.
    if ((query.pageNumber - 1) * query.pageSize >= totalItems) return { totalItems, orders: [] }
    const { rows } = await db.query<Row>(pageStatement(entities, query))
    return { totalItems, orders: rows.map(orderOf) }
  })
}

function countStatement(entities: readonly string[], filter: OrderFilter): Statement {
  const { where, values } = conditionsOf(entities, filter)
  return { text: `select count(*) as total from tokenmill.order where ${where}`, values }
}

export function pageStatement(entities: readonly string[], query: OrderQuery): Statement {
  const { where, values } = conditionsOf(entities, query)
  const direction = query.orderBy === 'ASC' ? 'asc' : 'desc'
  const limit = values.push(query.pageSize)
  const offset = values.push((query.pageNumber - 1) * query.pageSize)
  return {
    text: `select ${SHOWN}
from tokenmill.order
where ${where}
order by ${DATES[query.filterDateType]} ${direction}, order_id ${direction}
limit $${limit}::int offset $${offset}::bigint`,
    values,
  }
}

interface Creator {
  createdUserUid: string
  createdBy: string
}

/** The most creators of a list, which isn't paged. */
const CREATORS_MAX = 10_000

/** The creators of these entities' orders that match `filter`, sorted by name. */
export async function findCreators(db: Db, entities: readonly string[], filter: OrderFilter): Promise<Creator[]> {
  const { where, values } = conditionsOf(entities, filter)
  const { rows } = await db.query<Creator>({
    text: `select distinct created_by as "createdBy", created_user_uid as "createdUserUid"
from tokenmill.order
where ${where}
order by created_by, created_user_uid
limit ${CREATORS_MAX}`,
    values,
  })
  return rows
}

const DATES = { createdDate: 'created_date', modifiedDate: 'modified_date' } as const

function conditionsOf(entities: readonly string[], filter: OrderFilter): { where: string; values: unknown[] } {
  const [first, ...others] = entities
  const types = filter.orderType
  const one = types.length === 1 ? types[0] : undefined
  const values: unknown[] = [others.length === 0 ? first : plains(entities), one ?? plains(types)]
  // With one entity the rows come from an index in their order.
  const conditions = [
    others.length === 0 ? 'entity_uid = $1::uuid' : 'entity_uid = any($1::uuid[])',
    one ? 'order_type = $2' : 'order_type = any($2::text[])',
  ]
  const date = DATES[filter.filterDateType]
  const given = <T>(value: T | undefined, bound: unknown, clause: (parameter: string) => string) => {
    if (value !== undefined) conditions.push(clause(`$${values.push(bound)}`))
  }
  const { orderReference, status, userUids, startTime, endTime, merchantCompany } = filter
  const { merchantCompanyEntityUid, merchantCompanyEntityUids, customerEntityUid, customerEntityUids } = filter
  const list = (uids: readonly string[] | undefined) => uids && plains(uids)
  given(orderReference, orderReference, p => `(order_reference = ${p} or order_id = ${p})`)
  given(status, status, p => `status = ${p}`)
  given(
    userUids,
    list(userUids),
    p => `(created_user_uid = any(${p}::uuid[]) or modified_user_uid = any(${p}::uuid[]))`,
  )
  given(startTime, startTime && at(startTime), p => `${date} >= ${p}::timestamptz`)
  given(endTime, endTime && at(endTime), p => `${date} <= ${p}::timestamptz`)
  // The database's locale may not know upper and lower case of letters outside ASCII.
  given(merchantCompany, merchantCompany, p => `strpos(${folded('merchant_company')}, ${folded(p)}) > 0`)
  given(merchantCompanyEntityUid, merchantCompanyEntityUid, p => `merchant_company_entity_uid = ${p}::uuid`)
  given(
    merchantCompanyEntityUids,
    list(merchantCompanyEntityUids),
    p => `merchant_company_entity_uid = any(${p}::uuid[])`,
  )
  given(customerEntityUid, customerEntityUid, p => `customer_entity_uid = ${p}::uuid`)
  given(customerEntityUids, list(customerEntityUids), p => `customer_entity_uid = any(${p}::uuid[])`)
  return { where: conditions.join(' and '), values }
}

const folded = (text: string) => `lower(${text} collate "und-x-icu")`
