// A service that an HTTP server of the product offers, and what the server itself needs, whatever its routes.
import type { Health } from '../../../src/health.ts'
import type { Logger } from '../../../src/logger.ts'
import type { Tracer } from '../../../src/trace/tracer.ts'
import type { GatewayApp } from '../app.ts'
import type { DocumentNotes } from '../document/notes.ts'
import type { ErrorBody } from '../error-bodies.ts'
import type { HttpMetrics } from '../metrics.ts'
import type { Authenticate } from './authenticate.ts'
import type { IsKnownKey } from './idempotency-key.ts'

/** The dependencies of the server itself. */
export interface ServerDeps {
  settings: ServerSettings
  authenticate: Authenticate
  isKnownKey: IsKnownKey
  metrics: HttpMetrics
  /** Says whether the process can work; answers /readyz. */
  health: Health
  log: Logger
  /** Undefined if traces are off. */
  tracer: Tracer | undefined
}

export interface ServerSettings {
  /** Requests per client and minute, counted by this process; 0: no limit. */
  rateLimit: number
}

/**
 * A function that adds routes, for example `export function cardRoutes(app: GatewayApp, deps: GatewayDeps): void`.
 */
export type RoutePlugin<Deps> = (app: GatewayApp, deps: Deps) => void

/** What belongs together of a server: routes, what the document says of them, and their error body. services.ts lists them. */
export interface Service<Deps> {
  routes: readonly RoutePlugin<Deps>[]
  notes: DocumentNotes
  /** Absent: that of the token service. */
  errorBody?: ErrorBody
}
