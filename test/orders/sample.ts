// Makes orders with few different values, so that filters find several.
import type { IngestedOrder } from '../../src/orders/order.ts'
import { ORDER_STATUSES, ORDER_TYPES } from '../../src/orders/order.ts'

export const MINE = '6a1f6f0e-3a52-4c3b-9a57-0c1d2e3f4a5b'
export const THEIRS = '7b2a6f0e-3a52-4c3b-9a57-0c1d2e3f4a5b'
export const uid = (n: number) => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`
const COMPANIES = ['Bäckerei Österreich', 'ACME 100%_\\', "O'Hara & Sons", 'acme north', undefined]

/** The same `n` gives the same order. Every tenth belongs to another entity. */
export function orderOf(n: number): IngestedOrder {
  const created = Date.UTC(2026, 0, 1) + (n % 50) * 3_600_000
  const company = COMPANIES[n % 5]
  return {
    orderId: `order-${n}`,
    orderReference: `R${n % 40}`,
    status: ORDER_STATUSES[n % 3] ?? 'DRAFT',
    orderType: n % 4 === 0 ? (ORDER_TYPES[n % 7] ?? 'POIOrder') : 'MerchantOrder',
    createdUserUid: uid(n % 6),
    createdBy: `User ${n % 6}`,
    createdDate: new Date(created).toISOString(),
    modifiedUserUid: uid((n * 5) % 7),
    modifiedBy: `User ${(n * 5) % 7}`,
    modifiedDate: new Date(created + (n % 9) * 60_000).toISOString(),
    entityUid: n % 10 === 9 ? THEIRS : MINE,
    ...(n % 3 === 0 ? {} : { merchantCompanyEntityUid: uid(100 + (n % 4)) }),
    ...(n % 5 === 0 ? {} : { customerEntityUid: uid(200 + (n % 3)) }),
    ...(company === undefined ? {} : { merchantCompany: company }),
  }
}
