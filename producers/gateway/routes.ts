// Every route plugin of the gateway, one line each, in the order of the OpenAPI document.
import { batchRoutes } from './batches/routes.ts'
import { captureKeyRoutes } from './capture-keys.ts'
import { cardRoutes } from './cards.ts'
import type { RoutePlugin } from './deps.ts'
import { notificationRoutes } from './notifications.ts'
import { operationRoutes } from './operation-routes.ts'
import { opsRoutes } from './ops.ts'
import { orderRoutes } from './orders.ts'
import { reportRoutes } from './reports.ts'

export const ROUTES: readonly RoutePlugin[] = [
  cardRoutes,
  operationRoutes,
  batchRoutes,
  captureKeyRoutes,
  reportRoutes,
  orderRoutes,
  notificationRoutes,
  opsRoutes,
]
