// What the console's routes are given: everything that its process has opened. There is no key of the vault among it: no
// key-encryption key, and none of API keys, of cards or of network tokens.
import type { Clock } from '../../src/clock.ts'
import type { Config } from '../../src/config.ts'
import type { Catalogue } from '../../src/job/catalogue.ts'
import type { Logger } from '../../src/logger.ts'
import type { Queues } from '../../src/queue/engine.ts'
import type { Store } from '../../src/store/pool.ts'
import type { SendAct } from './act-sender.ts'
import type { Live } from './live/live.ts'
import type { ConsoleMetrics } from './metrics.ts'
import type { OpenIdProvider } from './openid-provider/provider.ts'
import type { Site } from './site.ts'

export interface ConsoleDeps {
  /** The installation's name, which every page shows. */
  name: string
  /** The word beside it, in capitals: which of several installations this is. */
  environment?: string | undefined
  installationId: string
  /** For how many days data are kept, as set on this host; other hosts have settings of their own. */
  kept: Pick<Config, 'receiptDays' | 'reportDays' | 'backupDays'>
  /** The store is the embedded PostgreSQL: `start` prints a link that signs in, and its sessions act without a touch. */
  isEmbedded: boolean
  /** An open run of a schedule counts as late after this many ms. */
  scheduleLateMs: number
  /** Known once the console listens: port 0 stands for any free port. */
  site: () => Site
  /** Uses the database role `tokenmill_console`. */
  store: Store
  /** When the store last answered this process, in ms since the epoch. */
  answeredAt: () => number
  sendAct: SendAct
  /** The kinds of job, which pages show and the failed set has. */
  catalogue: Catalogue
  /** Pages read them; the only jobs that the console adds are acts. */
  queues: Queues
  /** Undefined: people sign in with passkeys only. */
  openid?: OpenIdProvider | undefined
  /** Streams of pages that stay live. */
  live: Live
  clock: Clock
  metrics: ConsoleMetrics
  log: Logger
}
