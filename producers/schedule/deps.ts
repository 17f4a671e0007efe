// The dependencies of the schedule: everything that its process opened.
import type { Clock } from '../../src/clock.ts'
import type { SigningKey } from '../../src/job/envelope/envelope.ts'
import type { InstallationKeys } from '../../src/job/envelope/installation-jws.ts'
import type { Logger } from '../../src/log.ts'
import type { Queues } from '../../src/queue/engine.ts'
import type { Store } from '../../src/store/pool.ts'
import type { ScheduleMetrics } from './metrics.ts'

export interface ScheduleDeps {
  store: Store
  queues: Queues
  /** The system client `scheduler`: its key, and its user as a UUID. */
  signingKey: SigningKey
  userId: string
  installationKeys: InstallationKeys
  settings: ScheduleSettings
  clock: Clock
  metrics: ScheduleMetrics
  log: Logger
}

export interface ScheduleSettings {
  /** The installation's name. */
  audience: string
  /** An open run is late after so long, ms. */
  lateMs: number
  /** Ended runs are kept for so many days. */
  keepDays: number
  /** At most so many tokens of an expiry sweep are sent and not answered yet. */
  sweepPage: number
  /** The job of a webhook that nobody has tried after so long is sent again, ms. */
  webhookLeaseMs: number
}
