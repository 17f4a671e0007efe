// The dependencies of the gateway's routes: everything that its process has opened. There is no key-encryption key
// among them, and nothing that could open a card.
import type { Clock } from '../../src/clock.ts'
import type { Catalogue } from '../../src/job/catalogue.ts'
import type { SigningKey } from '../../src/job/envelope/envelope.ts'
import type { Queues } from '../../src/queue/engine.ts'
import type { Scope } from '../../src/store/access/scopes.ts'
import type { PublicSigningKey } from '../../src/store/access/signing-keys.ts'
import type { Store } from '../../src/store/pool.ts'
import type { ShownScheme } from '../../src/token/scheme.ts'
import type { RoleRing } from '../../src/vault/ring/role-ring.ts'
import type { TellUngranted } from '../../src/vault/ring/ungranted.ts'
import type { SigningKeys } from '../signing-keys.ts'
import type { Directory } from './directory.ts'
import type { GatewayMetrics } from './metrics.ts'
import type { RequestReply, RequestReplySettings } from './request-reply/request-reply.ts'
import type { ServerDeps, ServerSettings, Service } from './server/service.ts'

export interface GatewaySettings extends RequestReplySettings, ServerSettings {
  /** The largest body of a batch, in bytes. */
  batchBytesMax: number
  /** A chunk without an answer is queued again after this many ms, an operation at the latest then. */
  resendMs: number
  /** How long operations and batches are kept, in days: as long as receipts. */
  receiptDays: number
}

export interface GatewayDeps extends ServerDeps {
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
  /** The installation's signing keys that this process believes. */
  trusted: SigningKeys<PublicSigningKey>
  requestReply: RequestReply
  clock: Clock
  metrics: GatewayMetrics
  /** Told of a row that grants rights, and that isn't believed here. */
  onUngranted: TellUngranted
}

export type GatewayService = Service<GatewayDeps>

/** The scheme tokens of tokens, as HTTP shows them. */
export interface SchemeTokens {
  /** The one that the token's record shows, with its full number if this process may show it; undefined if there is none. */
  find(tokenId: string, scope: Scope | undefined): Promise<ShownScheme | undefined>
  /** The ids of the tokens with this value of a third party. */
  findThirdPartyTokens(value: string): Promise<string[]>
  /** Puts the full number into the record with which a worker answered a write of `reuseToken`. */
  unmask(record: Record<string, unknown>, reuseToken: string): Promise<Record<string, unknown>>
}
