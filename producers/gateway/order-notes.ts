// Texts of the OpenAPI document about orders: properties and examples.
import type { Notes } from '../../src/job/describe/annotate.ts'
import { PAGE_SIZE_DEFAULT } from '../../src/orders/query.ts'
import { type DocumentNotes, json, type OperationNotes, pages } from './document/notes.ts'
import { ENTITY, USER } from './document/samples.ts'

const PROPERTIES: Notes = {
  ...pages('listOrders', PAGE_SIZE_DEFAULT),
  orders: 'The orders of this page.',
  orderId: 'Id of the order.',
  orderReference: 'Reference of the order.',
  'orders.status': 'Status of the order.',
  'orders.orderType': 'Type of the order.',
  createdUserUid: 'UUID of the user who created the order.',
  createdBy: 'Name of the user who created the order.',
  createdDate: 'When the order was created, RFC 3339 in UTC.',
  modifiedUserUid: 'UUID of the user who last changed the order.',
  modifiedBy: 'Name of the user who last changed the order.',
  modifiedDate: 'When the order was last changed, RFC 3339 in UTC.',
  entityUid: 'UUID of the entity that the order belongs to.',
  merchantCompanyEntityUid: 'UUID of the merchant company.',
  customerEntityUid: 'UUID of the site (customer entity).',
  metadata: 'The place of this page in the list.',
  'metadata.totalPages': 'Number of pages.',
  'metadata.pageNumber': 'Number of this page, from 1.',
  'metadata.pageSize': 'Most orders that a page holds.',
  'metadata.totalItems': 'Number of orders on all pages.',
}

const filter = {
  status: 'SUBMITTED',
  orderType: ['MerchantOrder'],
  startTime: '2026-01-01T00:00:00Z',
  userUids: [USER],
}
const order = {
  orderId: 'O-1001',
  orderReference: 'terminals-berlin',
  status: 'SUBMITTED',
  orderType: 'MerchantOrder',
  createdUserUid: USER,
  createdBy: 'Anna Meyer',
  createdDate: '2026-01-15T10:00:00.000Z',
  modifiedUserUid: USER,
  modifiedBy: 'Anna Meyer',
  modifiedDate: '2026-01-16T08:30:00.000Z',
  entityUid: ENTITY,
}

const OPERATIONS: Readonly<Record<string, OperationNotes>> = {
  listOrders: {
    description:
      "Orders of the caller's entity, page by page, by the date that `filterDateType` names. Each order names who created and who last changed it.",
    parameters: { ...filter, pageNumber: 1, pageSize: 50 },
    answers: {
      200: {
        description: 'One page of orders.',
        examples: json({
          page: { orders: [order], metadata: { totalPages: 1, pageNumber: 1, pageSize: 50, totalItems: 1 } },
        }),
      },
    },
    refusals: { 400: ['field_range', 'query.pageSize'] },
  },
  listOrderCreators: {
    description:
      'Deprecated: still answered, to be removed in a future release. `GET /orders` names the creator beside each order. Who created orders, each once, by name.',
    parameters: filter,
    answers: {
      200: {
        description: 'Those who created orders.',
        examples: json({ creators: [{ createdUserUid: USER, createdBy: 'Anna Meyer' }] }),
      },
    },
    refusals: { 400: ['field_format', 'query.userUids.0'] },
  },
}

export const ORDER_NOTES: DocumentNotes = {
  tags: [{ name: 'Orders', description: 'Orders of devices, merchants and services.' }],
  properties: PROPERTIES,
  operations: OPERATIONS,
}
