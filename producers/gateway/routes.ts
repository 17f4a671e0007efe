// The route plugins of the gateway, in the order of the OpenAPI document.
import { batchRoutes } from './batches/routes.ts'
import type { RoutePlugin } from './deps.ts'
import { operationRoutes } from './operations/operation-routes.ts'
import { orderRoutes } from './orders.ts'
import { reportRoutes } from './reports/reports.ts'
import { opsRoutes } from './server/ops.ts'
import { captureKeyRoutes } from './tokens/capture-keys.ts'
import { cardRoutes } from './tokens/cards.ts'
import { type Notifications, notificationRoute } from './tokens/notifications.ts'
import { referenceRoutes } from './tokens/references.ts'

/** What routes need that no other route does. */
export interface RouteMeans {
  /** Undefined if no scheme-token network is set up. */
  notifications: Notifications | undefined
}

export const routesOf = ({ notifications }: RouteMeans): readonly RoutePlugin[] => [
  cardRoutes,
  referenceRoutes,
  operationRoutes,
  batchRoutes,
  captureKeyRoutes,
  reportRoutes,
  orderRoutes,
  ...(notifications ? [notificationRoute(notifications)] : []),
  opsRoutes,
]
