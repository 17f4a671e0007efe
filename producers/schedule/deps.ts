// The dependencies of the schedule: everything that its process opened.
import type { Clock } from '../../src/clock.ts'
import type { SigningKey } from '../../src/job/envelope/envelope.ts'
import type { Logger } from '../../src/log.ts'
import type { Queues } from '../../src/queue/engine.ts'
import type { Store } from '../../src/store/pool.ts'
import type { TrustedKeys } from '../results.ts'
import type { ScheduleMetrics } from './metrics.ts'

export interface ScheduleDeps {
  store: Store
  queues: Queues
  /** The key of the system client `scheduler`, and its user id (a UUID). */
  signingKey: SigningKey
  userId: string
  trusted: TrustedKeys
  settings: ScheduleSettings
  clock: Clock
  metrics: ScheduleMetrics
  log: Logger
}

export interface ScheduleSettings {
  /** The installation's name. */
  audience: string
  /** An open run counts as late after this many ms. */
  lateMs: number
  /** For how many days ended runs are kept. */
  keepDays: number
  /** How many tokens of an expiry sweep may be sent and unanswered. */
  sweepPage: number
  /** The job of a webhook that no worker has tried after this many ms is sent again. */
  webhookLeaseMs: number
}
