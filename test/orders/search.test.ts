// Orders in the store: the latest modification is kept, and a search finds the same orders as a filter over all orders.
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openLog } from '../../src/log.ts'
import type { IngestedOrder } from '../../src/orders/order.ts'
import { OrderQuery } from '../../src/orders/query.ts'
import * as orders from '../../src/store/ledger/orders.ts'
import { openStore, type Store } from '../../src/store/pool.ts'
import { type FreshDatabase, freshDatabase } from '../support/postgres.ts'
import { MINE, orderOf, THEIRS, uid } from './sample.ts'

const ALL = Array.from({ length: 400 }, (_, n) => orderOf(n))

let database: FreshDatabase
let store: Store
/** A store with the gateway's role. */
let reader: Store
beforeAll(async () => {
  database = await freshDatabase()
  store = openStore(database.url, { log: openLog('silent'), connectionsMax: 4 })
  reader = openStore(database.url, { log: openLog('silent'), connectionsMax: 4, role: 'tokenmill_gateway' })
  expect(await orders.saveAll(store, ALL)).toEqual({ created: ALL.length, updated: 0 })
})
afterAll(async () => {
  await reader?.close()
  await store?.close()
  await database?.drop()
})

const idsOf = (found: { orderId: string }[]) => found.map(({ orderId }) => orderId)

describe('an order', () => {
  const later = (minutes: number, more: Partial<IngestedOrder> = {}): IngestedOrder => ({
    ...orderOf(1_000),
    modifiedDate: new Date(Date.parse(orderOf(1_000).modifiedDate) + minutes * 60_000).toISOString(),
    ...more,
  })
  const mine = async () => {
    const query = OrderQuery.parse({ orderReference: 'order-1000', orderType: orderOf(1_000).orderType })
    return (await orders.search(reader, [MINE], query)).orders
  }

  it('takes a later state, and no earlier one or the same again, in whatever order they come', async () => {
    expect(await orders.saveAll(store, [later(10, { status: 'SUBMITTED' })])).toEqual({ created: 1, updated: 0 })
    expect(await orders.saveAll(store, [later(10, { status: 'DRAFT' })])).toEqual({ created: 0, updated: 0 })
    expect(await orders.saveAll(store, [later(5, { status: 'DRAFT' })])).toEqual({ created: 0, updated: 0 })
    expect(await mine()).toMatchObject([{ status: 'SUBMITTED' }])
    expect(await orders.saveAll(store, [later(11, { status: 'COMPLETED' })])).toEqual({ created: 0, updated: 1 })
    expect(await mine()).toMatchObject([{ status: 'COMPLETED' }])
    // If several set an order at once, the latest modification is kept.
    const states = Array.from({ length: 20 }, (_, n) => later(20 + n, { modifiedBy: `Writer ${n}` }))
    await Promise.all(
      states.toSorted((a, b) => a.modifiedBy.localeCompare(b.modifiedBy)).map(state => orders.saveAll(store, [state])),
    )
    expect(await mine()).toMatchObject([{ modifiedBy: 'Writer 19' }])
    await store.query({ text: `delete from tokenmill.order where order_id = 'order-1000'` })
  })

  it('is written by nobody who only reads', async () => {
    await expect(orders.saveAll(reader, [orderOf(2_000)])).rejects.toThrow()
  })
})

const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined, freq: 2 })
const moments = fc
  .integer({ min: -2, max: 55 * 4 })
  .map(n => new Date(Date.UTC(2026, 0, 1) + n * 900_000).toISOString())
const queries = fc
  .record({
    orderReference: maybe(
      fc.oneof(
        fc.integer({ min: 0, max: 45 }).map(n => `R${n}`),
        fc.constant('order-7'),
      ),
    ),
    status: maybe(fc.constantFrom('DRAFT', 'SUBMITTED', 'INPROGRESS', 'ONHOLD')),
    orderType: maybe(fc.constantFrom('MerchantOrder', 'POIOrder', 'MerchantOrder,POIOrder,HardwareOrder')),
    filterDateType: maybe(fc.constantFrom('createdDate', 'modifiedDate')),
    userUids: maybe(fc.array(fc.integer({ min: 0, max: 8 }).map(uid), { minLength: 1, maxLength: 3 })),
    startTime: maybe(moments),
    endTime: maybe(moments),
    merchantCompany: maybe(fc.constantFrom('acme', 'ACME', '%', '_', '\\', "'", 'österreich', 'BÄCKEREI', 'a', 'zzz')),
    merchantCompanyEntityUid: maybe(fc.integer({ min: 100, max: 104 }).map(uid)),
    merchantCompanyEntityUids: maybe(
      fc.array(fc.integer({ min: 100, max: 104 }).map(uid), { minLength: 1, maxLength: 3 }),
    ),
    customerEntityUids: maybe(fc.array(fc.integer({ min: 200, max: 204 }).map(uid), { minLength: 1, maxLength: 3 })),
    customerEntityUid: maybe(fc.integer({ min: 200, max: 203 }).map(uid)),
    orderBy: maybe(fc.constantFrom('ASC', 'DESC')),
    pageNumber: maybe(fc.integer({ min: 1, max: 4 }).map(String)),
    pageSize: maybe(fc.integer({ min: 1, max: 100 }).map(String)),
  })
  .map(query => OrderQuery.safeParse(JSON.parse(JSON.stringify(query))))
  .filter(parsed => parsed.success)
  .map(parsed => parsed.data as OrderQuery)

/** Finds the orders by a filter over all of them. */
function found(entity: string, query: OrderQuery): IngestedOrder[] {
  const within = (list: readonly string[] | undefined, value: string | undefined) =>
    list === undefined || (value !== undefined && list.includes(value))
  const is = (wanted: string | undefined, value: string | undefined) =>
    within(wanted === undefined ? wanted : [wanted], value)
  const date = (order: IngestedOrder) => Date.parse(order[query.filterDateType])
  const sign = query.orderBy === 'ASC' ? 1 : -1
  return ALL.filter(
    order =>
      order.entityUid === entity &&
      query.orderType.includes(order.orderType) &&
      is(query.status, order.status) &&
      (is(query.orderReference, order.orderReference) || is(query.orderReference, order.orderId)) &&
      (within(query.userUids, order.createdUserUid) || within(query.userUids, order.modifiedUserUid)) &&
      (query.startTime === undefined || date(order) >= Date.parse(query.startTime)) &&
      (query.endTime === undefined || date(order) <= Date.parse(query.endTime)) &&
      (query.merchantCompany === undefined ||
        (order.merchantCompany ?? '').toLowerCase().includes(query.merchantCompany.toLowerCase())) &&
      is(query.merchantCompanyEntityUid, order.merchantCompanyEntityUid) &&
      within(query.merchantCompanyEntityUids, order.merchantCompanyEntityUid) &&
      is(query.customerEntityUid, order.customerEntityUid) &&
      within(query.customerEntityUids, order.customerEntityUid),
  ).sort((a, b) => sign * (date(a) - date(b) || Buffer.compare(Buffer.from(a.orderId), Buffer.from(b.orderId))))
}

describe('a search for orders', () => {
  it('finds what a walk through all of them finds, in its order, page by page, for any filter and either entity', async () => {
    await fc.assert(
      fc.asyncProperty(queries, fc.constantFrom(MINE, THEIRS), async (query, entity) => {
        const expected = found(entity, query)
        const page = await orders.search(reader, [entity], query)
        expect(page.totalItems).toBe(expected.length)
        const start = (query.pageNumber - 1) * query.pageSize
        expect(idsOf(page.orders)).toEqual(idsOf(expected.slice(start, start + query.pageSize)))
        const creators = await orders.findCreators(reader, [entity], query)
        const names = new Set(expected.map(({ createdBy, createdUserUid }) => `${createdBy} ${createdUserUid}`))
        expect(creators.map(({ createdBy, createdUserUid }) => `${createdBy} ${createdUserUid}`)).toEqual(
          [...names].sort(),
        )
      }),
      { numRuns: 150 },
    )
  })

  it('shows what was taken in, and nothing of what has no value', async () => {
    const { merchantCompany: _, ...shown } = orderOf(1)
    const query = OrderQuery.parse({ orderReference: 'order-1' })
    expect(await orders.search(reader, [MINE], query)).toEqual({ totalItems: 1, orders: [shown] })
    expect(
      Object.keys(
        (await orders.search(reader, [MINE], OrderQuery.parse({ orderReference: 'order-15' }))).orders[0] ?? {},
      ),
    ).not.toContain('customerEntityUid')
  })

  it('is empty on a page far beyond the end', async () => {
    const query = OrderQuery.parse({ pageNumber: '999999999', pageSize: '100' })
    expect((await orders.search(reader, [MINE], query)).orders).toEqual([])
  })

  it('reads a page off an index, in either order', async () => {
    for (const given of [{}, { orderBy: 'ASC' }, { filterDateType: 'modifiedDate' }]) {
      const { text, values = [] } = orders.pageStatement([MINE], OrderQuery.parse(given))
      await reader.transaction(async db => {
        await db.query({ text: 'set local enable_seqscan = off' })
        await db.query({ text: 'set local enable_sort = off' })
        const { rows } = await db.query<{ 'QUERY PLAN': string }>({ text: `explain (costs off) ${text}`, values })
        const plan = rows.map(row => row['QUERY PLAN']).join('\n')
        expect(plan).toMatch(/Index Scan (Backward )?using order_by_(creation|modification)/)
        expect(plan).not.toMatch(/Sort/)
      })
    }
  })
})
