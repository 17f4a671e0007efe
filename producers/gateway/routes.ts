// The route plugins of the gateway, in the order of the OpenAPI document.
import { batchRoutes } from './batches/routes.ts'
import type { RoutePlugin } from './deps.ts'
import { operationRoutes } from './operations/operation-routes.ts'
import { orderRoutes } from './orders.ts'
import { reportRoutes } from './reports/reports.ts'
import { opsRoutes } from './server/ops.ts'
import { captureKeyRoutes } from './tokens/capture-keys.ts'
import { cardRoutes } from './tokens/cards.ts'
import { notificationRoutes } from './tokens/notifications.ts'
import { referenceRoutes } from './tokens/references.ts'

export const ROUTES: readonly RoutePlugin[] = [
  cardRoutes,
  referenceRoutes,
  operationRoutes,
  batchRoutes,
  captureKeyRoutes,
  reportRoutes,
  orderRoutes,
  notificationRoutes,
  opsRoutes,
]
