// The dependencies of the gateway's routes: everything that its process has opened. There is no key-encryption key
// among them, and nothing that could open a card.
import type { Clock } from '../../src/clock.ts'
import type { Health } from '../../src/health.ts'
import type { Catalogue } from '../../src/job/catalogue.ts'
import type { SigningKey } from '../../src/job/envelope/envelope.ts'
import type { Logger } from '../../src/log.ts'
import type { Queues } from '../../src/queue/engine.ts'
import type { Scope } from '../../src/store/access/scopes.ts'
import type { Store } from '../../src/store/pool.ts'
import type { ShownScheme } from '../../src/token/scheme.ts'
import type { Tracer } from '../../src/trace/tracer.ts'
import type { RoleRing } from '../../src/vault/ring/role-ring.ts'
import type { GatewayApp } from './app.ts'
import type { Directory } from './directory.ts'
import type { DocumentNotes } from './document/notes.ts'
import type { GatewayMetrics, HttpMetrics } from './metrics.ts'
import type { RequestReply, RequestReplySettings } from './operations/request-reply.ts'
import type { Authenticate } from './server/authenticate.ts'
import type { ErrorBody } from './server/error-bodies.ts'
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
  /** The key of the system client `gateway`. */
  signingKey: SigningKey
  /** Keys that hash API keys and the bodies of batches, and open the numbers of scheme tokens; none opens a card. */
  ring: RoleRing
  schemeTokens: SchemeTokens
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

/** The scheme tokens of tokens, as HTTP shows them. */
export interface SchemeTokens {
  /** The one that the token's record shows, with its full number if this process may show it; undefined if there is none. */
  find(tokenId: string, scope: Scope | undefined): Promise<ShownScheme | undefined>
  /** Puts the full number into the record with which a worker answered a write of `reuseToken`. */
  unmask(record: Record<string, unknown>, reuseToken: string): Promise<Record<string, unknown>>
}

/** The dependencies of the server itself, whatever its routes. */
export interface ServerDeps extends Pick<GatewayDeps, 'authenticate' | 'isKnownKey' | 'health' | 'log' | 'tracer'> {
  metrics: HttpMetrics
  settings: Pick<GatewaySettings, 'rateLimit'>
}

/**
 * A function that adds routes, for example `export function cardRoutes(app: GatewayApp, deps: GatewayDeps): void`.
 */
export type RoutePlugin<D = GatewayDeps> = (app: GatewayApp, deps: D) => void

/** What belongs together of a server: routes, what the document says of them, and their error body. services.ts lists them. */
export interface Service<D = GatewayDeps> {
  routes: readonly RoutePlugin<D>[]
  notes: DocumentNotes
  /** Absent: that of the token service. */
  errorBody?: ErrorBody
}
