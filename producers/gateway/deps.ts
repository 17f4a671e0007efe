// The dependencies of each route of the gateway: everything that its process opened. There is no key-encryption key here and
// no way to a card.
import type { KeyObject } from 'node:crypto'
import type { Clock } from '../../src/clock.ts'
import type { Health } from '../../src/health.ts'
import type { SigningKey } from '../../src/job/envelope/envelope.ts'
import type { Logger } from '../../src/log.ts'
import type { Queues } from '../../src/queue/engine.ts'
import type { ReportFiles } from '../../src/report/files/files.ts'
import type { Notification } from '../../src/scheme/notification.ts'
import type { Store } from '../../src/store/pool.ts'
import type { Tracer } from '../../src/trace/tracer.ts'
import type { NetworkTokenKey } from '../../src/vault/network-token.ts'
import type { GatewayApp } from './app.ts'
import type { Directory } from './directory.ts'
import type { GatewayMetrics, HttpMetrics } from './metrics.ts'
import type { RequestReply, RequestReplySettings } from './operations/request-reply.ts'
import type { Authenticate } from './server/authenticate.ts'
import type { IsKnownKey } from './server/idempotency-key.ts'

export interface GatewaySettings extends RequestReplySettings {
  /** Requests per client and minute; 0: no limit. */
  rateLimit: number
  /** Bytes that the body of a batch may have. */
  batchBytesMax: number
  /** An unanswered operation or chunk is queued again after so long, ms. */
  resendMs: number
  /** Operations and batches are kept as long as receipts are. */
  receiptDays: number
}

export interface GatewayDeps {
  settings: GatewaySettings
  /** Acts as the database role `tokenmill_gateway`. */
  store: Store
  queues: Queues
  /** Undefined where no place for them is set that every host reaches. */
  reportFiles: ReportFiles | undefined
  /** The key of the system client `gateway`. */
  signingKey: SigningKey
  /** A secret, the same in every gateway, from which the keys of hashes are derived. */
  hashKey: KeyObject
  /** Opens the numbers of scheme tokens, and nothing else. */
  networkTokenKey: NetworkTokenKey
  /** Undefined where no scheme token network is set up. */
  notifications: Notifications | undefined
  directory: Directory
  authenticate: Authenticate
  isKnownKey: IsKnownKey
  requestReply: RequestReply
  clock: Clock
  metrics: GatewayMetrics
  /** Whether it can work, for /readyz. */
  health: Health
  log: Logger
  /** Undefined where there are no traces. */
  tracer: Tracer | undefined
}

export interface Notifications {
  /** The network's name in the path and in the store. */
  provider: string
  /** Reads a request's `authorization` and body: whether the network sent it, and which tokens it names. */
  read(authorization: string | undefined, body: unknown): Notification
}

/** The part that the server itself needs, whatever its routes do. */
export interface ServerDeps extends Pick<GatewayDeps, 'authenticate' | 'isKnownKey' | 'health' | 'log' | 'tracer'> {
  metrics: HttpMetrics
  settings: Pick<GatewaySettings, 'rateLimit'>
}

/** For example `export function cardRoutes(app: GatewayApp, deps: GatewayDeps): void`; routes.ts lists them. */
export type RoutePlugin<D = GatewayDeps> = (app: GatewayApp, deps: D) => void
