import { describe, expect, it } from 'vitest'
import { fieldsOf, isRefusal } from '../../src/errors.ts'
import { parse } from '../../src/job/refusal.ts'
import { IngestedOrder } from '../../src/orders/order.ts'
import { OrderFilter, OrderQuery } from '../../src/orders/query.ts'
import { orderOf, uid } from './sample.ts'

const wrong = (schema: typeof OrderFilter | typeof OrderQuery, query: Record<string, unknown>) => {
  const parsed = parse<unknown>(schema, query, 'query')
  return isRefusal(parsed) ? fieldsOf(parsed).map(({ field, reason }) => `${field} ${reason}`) : 'taken'
}
const many = (n: number) => Array.from({ length: n }, (_, index) => uid(index))

describe('a query for orders', () => {
  it.each([
    [{ sort: 'x' }, 'query.sort field_unknown'],
    [{ status: 'submitted' }, 'query.status field_value'],
    [{ status: ['DRAFT', 'SUBMITTED'] }, 'query.status field_value'],
    [{ orderType: '' }, 'query.orderType field_value'],
    [{ orderType: 'POIOrder,' }, 'query.orderType field_value'],
    [{ orderType: ['POIOrder', 'merchantOrder'] }, 'query.orderType field_value'],
    [{ startTime: '2026-01-01T00:00:00 01:00' }, 'query.startTime plus_unescaped'],
    [{ endTime: '2026-01-01T00:00:00.5 14:00' }, 'query.endTime plus_unescaped'],
    [{ endTime: '2026-01-01 00:00' }, 'query.endTime field_format'],
    [{ filterDateType: 'deletedDate' }, 'query.filterDateType field_value'],
    [{ orderReference: '' }, 'query.orderReference field_length'],
    [{ orderReference: 'a\u0000b' }, 'query.orderReference field_characters'],
    [{ orderReference: ['a', 'b'] }, 'query.orderReference field_type'],
    [{ userUids: 'x' }, 'query.userUids.0 field_format'],
    [{ userUids: [uid(1), `${uid(2)},`] }, 'query.userUids.2 field_format'],
    [{ userUids: many(101) }, 'query.userUids field_length'],
    [{ merchantCompanyEntityUid: [uid(1), uid(2)] }, 'query.merchantCompanyEntityUid field_type'],
    [{ merchantCompanyEntityUids: `${uid(1)}' or true` }, 'query.merchantCompanyEntityUids.0 field_format'],
    [{ customerEntityUid: `${uid(1)},${uid(2)}` }, 'query.customerEntityUid field_format'],
    [{ startTime: 'yesterday' }, 'query.startTime field_format'],
    [{ startTime: '2026-01-01' }, 'query.startTime field_format'],
    [{ startTime: '2026-01-01T00:00:00' }, 'query.startTime field_format'],
    [{ startTime: '2026-02-30T00:00:00Z' }, 'query.startTime field_format'],
    [{ startTime: '0000-01-01T00:00:00Z' }, 'query.startTime field_range'],
    [{ endTime: '9999-12-31T23:59:59-14:00' }, 'query.endTime field_range'],
    [{ startTime: '2026-01-02T00:00:00Z', endTime: '2026-01-02T00:00:00+01:00' }, 'query.endTime field_range'],
    [{ merchantCompany: '' }, 'query.merchantCompany field_length'],
    [{ merchantCompany: ' \t ' }, 'query.merchantCompany field_format'],
    [{ merchantCompany: 'a'.repeat(101) }, 'query.merchantCompany field_length'],
  ])('refuses %j', (query, reason) => {
    for (const schema of [OrderFilter, OrderQuery]) expect(wrong(schema, query)).toContain(reason)
  })

  it.each([
    [{ pageNumber: '0' }, 'query.pageNumber field_range'],
    [{ pageNumber: '-1' }, 'query.pageNumber field_format'],
    [{ pageNumber: '1e3' }, 'query.pageNumber field_format'],
    [{ pageNumber: '99999999999' }, 'query.pageNumber field_format'],
    [{ pageSize: '0' }, 'query.pageSize field_range'],
    [{ pageSize: '101' }, 'query.pageSize field_range'],
    [{ pageSize: ['1', '2'] }, 'query.pageSize field_type'],
    [{ orderBy: 'desc' }, 'query.orderBy field_value'],
  ])('refuses %j', (query, reason) => {
    expect(wrong(OrderQuery, query)).toContain(reason)
    // Creators have no pages.
    expect(wrong(OrderFilter, query)).toEqual([`${reason.split(' ')[0]} field_unknown`])
  })

  it('has the defaults of its interface', () => {
    expect(OrderQuery.parse({})).toEqual({
      orderType: ['MerchantOrder'],
      filterDateType: 'createdDate',
      pageNumber: 1,
      pageSize: 50,
      orderBy: 'DESC',
    })
  })

  it('takes several types, repeated, with commas, and both', () => {
    for (const [given, types] of [
      ['POIOrder', ['POIOrder']],
      ['POIOrder,HardwareOrder', ['POIOrder', 'HardwareOrder']],
      [
        ['POIOrder', 'HardwareOrder'],
        ['POIOrder', 'HardwareOrder'],
      ],
      [
        ['POIOrder,MerchantOrder', 'POIOrder'],
        ['POIOrder', 'MerchantOrder'],
      ],
    ] as const)
      expect(OrderFilter.parse({ orderType: given }).orderType).toEqual(types)
  })

  it('takes lists repeated, with commas, and both, in any case', () => {
    const upper = 'ABCDEF00-0000-4000-8000-000000000000'
    expect(OrderFilter.parse({ userUids: [`${uid(1)},${upper}`, uid(3)] }).userUids).toEqual([
      uid(1),
      upper.toLowerCase(),
      uid(3),
    ])
    expect(OrderFilter.parse({ userUids: uid(1) }).userUids).toEqual([uid(1)])
    expect(wrong(OrderFilter, { customerEntityUids: many(100).join() })).toBe('taken')
  })
})

describe('an order that is taken in', () => {
  it('is whole, known in every part, and not modified before it was created', () => {
    expect(IngestedOrder.safeParse(orderOf(1)).success).toBe(true)
    const { orderId: _, ...nameless } = orderOf(1)
    const bad = [
      nameless,
      { ...orderOf(1), extra: 1 },
      { ...orderOf(1), status: 'LOST' },
      { ...orderOf(1), orderId: '' },
      { ...orderOf(1), createdBy: 'a\nb' },
      { ...orderOf(1), merchantCompany: 'a'.repeat(101) },
      { ...orderOf(1), modifiedDate: '2025-12-31T23:59:59Z' },
      { ...orderOf(1), modifiedDate: '2026-01-01T12:00:00' },
    ]
    expect(bad.filter(order => IngestedOrder.safeParse(order).success)).toEqual([])
  })
})
