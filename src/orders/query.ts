// The parameters of `GET /orders` and `GET /orders/creators`, checked: each narrows what is found, and one that isn't
// known is refused. Which entity asks isn't among them.
import { z } from 'zod'
import { isPrintable, text, uuid } from '../job/envelope/text.ts'
import { moment, ORDER_STATUSES, ORDER_TYPES } from './order.ts'

const LIST_MAX = 100
export const PAGE_SIZE_MAX = 100

/** Repeated, or with commas. */
const uuids = () =>
  z
    .union([z.string(), z.array(z.string())])
    .transform(given => [given].flat().flatMap(part => part.split(',')))
    .pipe(z.array(uuid()).min(1).max(LIST_MAX))

const filters = {
  orderReference: text(1, 128).optional().describe('The id of an order, or its reference.'),
  status: z.enum(ORDER_STATUSES).optional(),
  orderType: z.enum(ORDER_TYPES).default('MerchantOrder'),
  filterDateType: z
    .enum(['createdDate', 'modifiedDate'])
    .default('createdDate')
    .describe('The date that startTime and endTime are about.'),
  userUids: uuids().optional().describe('Users who created or modified the order.'),
  startTime: moment().optional().describe('From this moment on.'),
  endTime: moment().optional().describe('Up to this moment.'),
  merchantCompany: z
    .string()
    .min(1)
    .max(100)
    .regex(/^(?!\s*$).+/)
    .refine(isPrintable, { params: { reason: 'field_characters' } })
    .optional()
    .describe('A part of the name of the merchant company.'),
  merchantCompanyEntityUid: uuid().optional(),
  merchantCompanyEntityUids: uuids().optional(),
  customerEntityUids: uuids().optional(),
  customerEntityUid: uuid().optional(),
}

const inOrder = ({ startTime, endTime }: { startTime?: string | undefined; endTime?: string | undefined }) =>
  startTime === undefined || endTime === undefined || Date.parse(startTime) <= Date.parse(endTime)
const OUT_OF_ORDER = { path: ['endTime'], params: { reason: 'field_range' } }

export const OrderFilter = z.strictObject(filters).refine(inOrder, OUT_OF_ORDER)
export type OrderFilter = z.infer<typeof OrderFilter>

/** A whole number as a query has it. */
const count = (most: number) =>
  z
    .string()
    .regex(/^\d{1,9}$/)
    .transform(Number)
    .pipe(z.int().min(1).max(most))

export const OrderQuery = z
  .strictObject({
    ...filters,
    pageNumber: count(999_999_999).default(1),
    pageSize: count(PAGE_SIZE_MAX).default(50),
    orderBy: z.enum(['ASC', 'DESC']).default('DESC').describe('By the date of filterDateType.'),
  })
  .refine(inOrder, OUT_OF_ORDER)
export type OrderQuery = z.infer<typeof OrderQuery>
