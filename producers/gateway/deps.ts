// What every route of the gateway is handed: all that its process opened, and nothing that it could open itself. There
// is no key-encryption key here and no way to a card.
import type { KeyObject } from 'node:crypto'
import type { Clock } from '../../src/clock.ts'
import type { SigningKey } from '../../src/job/envelope/envelope.ts'
import type { Logger } from '../../src/log.ts'
import type { Metrics } from '../../src/metrics.ts'
import type { Queues } from '../../src/queue/engine.ts'
import type { ReportFiles } from '../../src/report/files/files.ts'
import type { Notification } from '../../src/scheme/notification.ts'
import type { Store } from '../../src/store/pool.ts'
import type { NetworkTokenKey } from '../../src/vault/network-token.ts'
import type { GatewayApp } from './app.ts'
import type { Directory } from './directory.ts'
import type { RequestReply, RequestReplySettings } from './operations/request-reply.ts'
import type { Authenticate } from './server/authenticate.ts'
import type { IsKnownKey } from './server/idempotency-key.ts'

export interface GatewaySettings extends RequestReplySettings {
  /** Requests per client and minute; 0: no limit. */
  rateLimit: number
  /** Bytes of a batch's body. */
  batchBytesMax: number
  /** After so long an unanswered operation or chunk is queued again, ms. */
  resendMs: number
  /** Operations and batches are known as long as receipts are. */
  receiptDays: number
}

export interface GatewayDeps {
  settings: GatewaySettings
  /** Acts as the database role `tokenmill_gateway`. */
  store: Store
  queues: Queues
  /** Undefined where there is no place for them that every host reaches. */
  reportFiles: ReportFiles | undefined
  /** The key of the system client `gateway`. */
  signingKey: SigningKey
  /** Secret, the same in every gateway: keyed hashes are made under keys derived from it. */
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
  metrics: Metrics
  log: Logger
}

export interface Notifications {
  /** As the path and the store name it. */
  provider: string
  /** Of a request's `authorization` and body: whether the network sent it, and of which tokens it speaks. */
  read(authorization: string | undefined, body: unknown): Notification
}

/** What the server itself needs, whatever its routes do. */
export interface ServerDeps extends Pick<GatewayDeps, 'authenticate' | 'isKnownKey' | 'metrics' | 'log'> {
  settings: Pick<GatewaySettings, 'rateLimit'>
}

/** `export function cardRoutes(app: GatewayApp, deps: GatewayDeps): void`; it stands in routes.ts. */
export type RoutePlugin<D = GatewayDeps> = (app: GatewayApp, deps: D) => void
