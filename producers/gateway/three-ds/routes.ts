// The routes of the 3-D Secure service, in the order of its OpenAPI document.

import type { GatewayApp } from '../app.ts'
import { opsPages } from '../server/ops.ts'
import type { RoutePlugin } from '../server/service.ts'
import { authenticationRoutes } from './authentications.ts'
import type { ThreeDsDeps } from './deps.ts'
import { jwtRoutes } from './jwt.ts'
import { lookupRoutes } from './lookup.ts'
import { resultRoutes } from './results.ts'

export const THREE_DS_ROUTES: readonly RoutePlugin<ThreeDsDeps>[] = [
  authenticationRoutes,
  lookupRoutes,
  jwtRoutes,
  resultRoutes,
  (app: GatewayApp, { health }) => opsPages(app, health, ['/oidc/3ds-service']),
]
