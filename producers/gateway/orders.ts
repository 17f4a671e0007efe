// The route that lists orders, and the deprecated route that lists their creators. A caller sees the orders of its own
// entity. `tokenmill ingest orders` stores the orders.
import { z } from 'zod'
import { Fault } from '../../src/errors.ts'
import { failureFor } from '../../src/job/problem.ts'
import { Order } from '../../src/orders/order.ts'
import { OrderFilter, OrderQuery } from '../../src/orders/query.ts'
import { findCreators, search } from '../../src/store/ledger/orders.ts'
import { ERRORS } from '../http/messages/cards.ts'
import type { Caller, GatewayApp } from './app.ts'
import type { GatewayDeps, GatewayService } from './deps.ts'
import type { Decline } from './error-bodies.ts'
import { ORDER_NOTES } from './order-notes.ts'
import { decline } from './server/replies.ts'

const ORDERS = '/oidc/orders'
const TAGS = ['Orders']

/** RFC 9745 and RFC 8594: the date of the deprecation, and the earliest date of removal. */
const DEPRECATION = {
  deprecation: `@${Date.UTC(2026, 0, 1) / 1000}`,
  sunset: new Date(Date.UTC(2027, 11, 31, 23, 59, 59)).toUTCString(),
  link: `<${ORDERS}>; rel="successor-version"`,
} as const

const OrderList = z.strictObject({
  orders: z.array(Order.extend({ createdDate: z.iso.datetime(), modifiedDate: z.iso.datetime() })),
  metadata: z.strictObject({
    totalPages: z.int().min(0),
    pageNumber: z.int().min(1),
    pageSize: z.int().min(1),
    totalItems: z.int().min(0),
  }),
})

const Creators = z.array(z.strictObject({ createdUserUid: z.guid(), createdBy: z.string() }))

export const orderService: GatewayService = { routes: [orderRoutes], notes: ORDER_NOTES }

function orderRoutes(app: GatewayApp, deps: GatewayDeps): void {
  const { store } = deps
  const noteCaller = openCallers(deps)

  app.route({
    method: 'GET',
    url: ORDERS,
    config: { access: ['REPORT_READ'] },
    schema: {
      operationId: 'listOrders',
      summary: 'Lists orders, page by page',
      tags: TAGS,
      querystring: OrderQuery,
      response: { 200: OrderList, ...ERRORS },
    },
    handler: async ({ query, caller }, reply) => {
      const found = await search(store, entitiesOf(caller, query), query).catch(tooLong)
      if ('status' in found) return decline(reply, found)
      const { orders, totalItems } = found
      const { pageNumber, pageSize } = query
      const totalPages = Math.ceil(totalItems / pageSize)
      return reply.code(200).send({ orders, metadata: { totalPages, pageNumber, pageSize, totalItems } })
    },
  })

  app.route({
    method: 'GET',
    url: `${ORDERS}/creators`,
    config: { access: ['REPORT_READ'] },
    // The headers are set also if a parameter or a role is refused.
    onRequest: async (_request, reply) => {
      reply.headers(DEPRECATION)
    },
    schema: {
      operationId: 'listOrderCreators',
      summary: 'Lists who made orders, by name; GET /orders has them beside each order',
      tags: TAGS,
      deprecated: true,
      querystring: OrderFilter,
      response: { 200: Creators, ...ERRORS },
    },
    handler: async ({ query, caller }, reply) => {
      noteCaller(caller)
      const found = await findCreators(store, entitiesOf(caller, query), query).catch(tooLong)
      return 'status' in found ? decline(reply, found) : reply.code(200).send(found)
    },
  })
}

/** Where orders are searched: the caller's own entity, unless the request names an order or other entities of the client. */
function entitiesOf({ client, entityId }: Caller, query: OrderFilter): string[] {
  const { orderReference, merchantCompanyEntityUid, merchantCompanyEntityUids = [] } = query
  const { customerEntityUid, customerEntityUids = [] } = query
  if (orderReference !== undefined) return client.entities
  const named = [merchantCompanyEntityUid, customerEntityUid, ...merchantCompanyEntityUids, ...customerEntityUids]
  return client.entities.filter(entity => entity === entityId || named.includes(entity))
}

function tooLong(error: unknown): Decline {
  if (error instanceof Fault && error.code === 'deadline') return failureFor('search_too_long', 'query')
  throw error
}

const CALLERS_MAX = 10_000

/** Counts every call, and logs each client once: the operator must inform these clients before the route is removed. */
function openCallers({ metrics, log }: Pick<GatewayDeps, 'metrics' | 'log'>): (caller: Caller) => void {
  const named = new Set<string>()
  return ({ client: { clientId } }) => {
    metrics.deprecatedCalls.inc({ operation: 'listOrderCreators' })
    if (named.has(clientId) || named.size >= CALLERS_MAX) return
    named.add(clientId)
    log.info({ client: clientId, operation: 'listOrderCreators' }, 'a deprecated operation is called')
  }
}
