// Checks the parameters of `GET /orders` and `GET /orders/creators`. An unknown parameter is refused. The entity that
// asks isn't a parameter.
import { z } from 'zod'
import { isPrintable, text, uuid } from '../job/envelope/text.ts'
import { moment, ORDER_STATUSES, ORDER_TYPES } from './order.ts'

const LIST_MAX = 100
const PAGE_SIZE_MAX = 100
export const PAGE_SIZE_DEFAULT = 50

/** How documents show the parameter: as the list that its texts stand for. */
const LIST = { type: 'array', items: { type: 'string', format: 'uuid' }, minItems: 1, maxItems: LIST_MAX } as const

/** Several UUIDs: the parameter is repeated, or its value has commas. */
const uuids = () =>
  z
    .union([z.string(), z.array(z.string())])
    .transform(given => [given].flat().flatMap(part => part.split(',')))
    .pipe(z.array(uuid()).min(1).max(LIST_MAX))
    .meta({ ...LIST, anyOf: undefined })

type OrderType = (typeof ORDER_TYPES)[number]
const isOrderType = (text: string): boolean => (ORDER_TYPES as readonly string[]).includes(text)

/** Types of orders: the parameter is repeated, or its value has commas. A type that is named twice counts once. */
const types = () =>
  z
    .union([z.string(), z.array(z.string())])
    .transform(given => [...new Set([given].flat().flatMap(part => part.split(',')))])
    .refine((given): given is OrderType[] => given.every(type => isOrderType(type)), {
      params: { reason: 'field_value' },
    })
    .meta({ type: 'array', items: { type: 'string', enum: ORDER_TYPES }, minItems: 1, anyOf: undefined })

/** Whether an unescaped `+` before the offset became a blank. */
function hasLostPlus(text: string): boolean {
  const escaped = text.replace(/ (?=\d\d:\d\d$)/, '+')
  return escaped !== text && moment().safeParse(escaped).success
}

/** A time of which the query's text says whether its `+` was lost. */
const time = () =>
  z
    .string()
    .refine(text => !hasLostPlus(text), { abort: true, params: { reason: 'plus_unescaped' } })
    .pipe(moment())
    .meta({ format: 'date-time' })

const REPEATED = `1 to ${LIST_MAX}; the parameter repeated, or one text with commas.`

const filters = {
  orderReference: text(1, 128).optional().describe('Id or reference of the order.'),
  status: z.enum(ORDER_STATUSES).optional().describe('Status of the order.'),
  orderType: types()
    .default(['MerchantOrder'])
    .describe('Types of the order; the parameter repeated, or one text with commas.'),
  filterDateType: z
    .enum(['createdDate', 'modifiedDate'])
    .default('createdDate')
    .describe('The date that `startTime` and `endTime` bound.'),
  userUids: uuids().optional().describe(`UUIDs of users who created or modified the order. ${REPEATED}`),
  startTime: time().optional().describe('Orders from this time on, inclusive. RFC 3339 with an offset.'),
  endTime: time().optional().describe('Orders up to this time, inclusive. RFC 3339 with an offset.'),
  merchantCompany: z
    .string()
    .min(1)
    .max(100)
    .regex(/^(?!\s*$).+/)
    .refine(isPrintable, { params: { reason: 'field_characters' } })
    .optional()
    .describe('Part of the name of the merchant company; upper and lower case count as the same.'),
  merchantCompanyEntityUid: uuid().optional().describe('UUID of the merchant company.'),
  merchantCompanyEntityUids: uuids().optional().describe(`UUIDs of merchant companies. ${REPEATED}`),
  customerEntityUids: uuids().optional().describe(`UUIDs of customer entities of the portfolio. ${REPEATED}`),
  customerEntityUid: uuid().optional().describe('UUID of the site (customer entity).'),
}

const inOrder = ({ startTime, endTime }: { startTime?: string | undefined; endTime?: string | undefined }) =>
  startTime === undefined || endTime === undefined || Date.parse(startTime) <= Date.parse(endTime)
const OUT_OF_ORDER = { path: ['endTime'], params: { reason: 'field_range' } }

export const OrderFilter = z.strictObject(filters).refine(inOrder, OUT_OF_ORDER)
export type OrderFilter = z.infer<typeof OrderFilter>

/** A whole number, which a query holds as text. Documents show the parameter as a number. */
const count = (most: number) =>
  z
    .string()
    .regex(/^\d{1,9}$/)
    .transform(Number)
    .pipe(z.int().min(1).max(most))
    .meta({ type: 'integer', minimum: 1, maximum: most, pattern: undefined })

export const OrderQuery = z
  .strictObject({
    ...filters,
    pageNumber: count(999_999_999).default(1).describe('Page of the list, from 1.'),
    pageSize: count(PAGE_SIZE_MAX).default(PAGE_SIZE_DEFAULT).describe('Orders per page.'),
    orderBy: z
      .enum(['ASC', 'DESC'])
      .default('DESC')
      .describe('Order of the list, by the date that `filterDateType` names.'),
  })
  .refine(inOrder, OUT_OF_ORDER)
export type OrderQuery = z.infer<typeof OrderQuery>
