// An order of devices, merchants or services, in the form in which it is ingested and shown. Field names are those of
// the HTTP interface. Orders have nothing to do with cards or payments.
import { z } from 'zod'
import { text, uuid } from '../job/envelope/text.ts'

export const ORDER_STATUSES = ['DRAFT', 'SUBMITTED', 'INPROGRESS', 'COMPLETED', 'CANCELLED', 'ONHOLD'] as const

export const ORDER_TYPES = [
  'POIOrder',
  'MerchantOrder',
  'POIMaintenanceOrder',
  'MerchantMaintenanceOrder',
  'POIAccessoryOrder',
  'AdditionalServicesOrder',
  'HardwareOrder',
] as const

/** An RFC 3339 time with offset, in a year that every store and clock can write. */
export const moment = () =>
  z.iso
    .datetime({ offset: true })
    .refine(given => Date.parse(given) >= FIRST && Date.parse(given) < BEYOND, { params: { reason: 'field_range' } })
const FIRST = Date.UTC(1900)
const BEYOND = Date.UTC(9999)

const orderText = () => text(1, 128)
const name = () => text(1, 200)

export const Order = z.strictObject({
  orderId: orderText(),
  orderReference: orderText(),
  status: z.enum(ORDER_STATUSES),
  orderType: z.enum(ORDER_TYPES),
  createdUserUid: uuid(),
  createdBy: name(),
  createdDate: moment(),
  modifiedUserUid: uuid(),
  modifiedBy: name(),
  modifiedDate: moment(),
  /** The entity that owns the order; no other entity sees it. */
  entityUid: uuid(),
  merchantCompanyEntityUid: uuid().optional(),
  customerEntityUid: uuid().optional(),
})
export type Order = z.infer<typeof Order>

/**
 * A line of `tokenmill ingest orders`: the order, and the company name that the parameter `merchantCompany` searches.
 */
export const IngestedOrder = Order.extend({
  merchantCompany: text(1, 100).optional(),
})
  // An order can't have been changed before it was created.
  .refine(({ createdDate, modifiedDate }) => Date.parse(createdDate) <= Date.parse(modifiedDate), {
    path: ['modifiedDate'],
    params: { reason: 'field_range' },
  })
export type IngestedOrder = z.infer<typeof IngestedOrder>
