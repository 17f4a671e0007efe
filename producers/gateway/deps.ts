// The dependencies of the gateway's routes: everything that its process has opened. There is no key-encryption key
// among them, and nothing that could open a card.
import type { Clock } from '../../src/clock.ts'
import type { Health } from '../../src/health.ts'
import type { Catalogue } from '../../src/job/catalogue.ts'
import type { SigningKey } from '../../src/job/envelope/envelope.ts'
import type { Logger } from '../../src/log.ts'
import type { Queues } from '../../src/queue/engine.ts'
import type { ReportFiles } from '../../src/report/files/files.ts'
import type { Notification } from '../../src/scheme/notification.ts'
import type { Store } from '../../src/store/pool.ts'
import type { Tracer } from '../../src/trace/tracer.ts'
import type { RoleRing } from '../../src/vault/ring/role-ring.ts'
import type { GatewayApp } from './app.ts'
import type { Directory } from './directory.ts'
import type { GatewayMetrics, HttpMetrics } from './metrics.ts'
import type { RequestReply, RequestReplySettings } from './operations/request-reply.ts'
import type { Authenticate } from './server/authenticate.ts'
import type { IsKnownKey } from './server/idempotency-key.ts'

export interface GatewaySettings extends RequestReplySettings {
  /** Requests per client and minute, counted by this process; 0: no limit. */
  rateLimit: number
  /** The largest body of a batch, in bytes. */
  batchBytesMax: number
  /** A chunk without an answer is queued again after this many ms, an operation at the latest then. */
  resendMs: number
  /** How long operations and batches are kept, in days: as long as receipts. */
  receiptDays: number
}

export interface GatewayDeps {
  settings: GatewaySettings
  /** Uses the database role `tokenmill_gateway`. */
  store: Store
  queues: Queues
  catalogue: Catalogue
  /** Undefined if no place for report files is set that every host reaches. */
  reportFiles: ReportFiles | undefined
  /** The key of the system client `gateway`. */
  signingKey: SigningKey
  /** Keys that hash API keys and the bodies of batches, and open the numbers of scheme tokens; none opens a card. */
  ring: RoleRing
  /** Undefined if no scheme-token network is set up. */
  notifications: Notifications | undefined
  directory: Directory
  authenticate: Authenticate
  isKnownKey: IsKnownKey
  requestReply: RequestReply
  clock: Clock
  metrics: GatewayMetrics
  /** Says whether the process can work; answers /readyz. */
  health: Health
  log: Logger
  /** Undefined if traces are off. */
  tracer: Tracer | undefined
}

export interface Notifications {
  /** The network's name, in the URL's path and in the store. */
  provider: string
  /** Reads a request's `authorization` and body: whether the network sent the request, and which tokens it names. */
  read(authorization: string | undefined, body: unknown): Notification
}

/** The dependencies of the server itself, whatever its routes. */
export interface ServerDeps extends Pick<GatewayDeps, 'authenticate' | 'isKnownKey' | 'health' | 'log' | 'tracer'> {
  metrics: HttpMetrics
  settings: Pick<GatewaySettings, 'rateLimit'>
}

/**
 * A function that adds routes, for example `export function cardRoutes(app: GatewayApp, deps: GatewayDeps): void`.
 * routes.ts lists them.
 */
export type RoutePlugin<D = GatewayDeps> = (app: GatewayApp, deps: D) => void
