// Finds out which features (members of envelopes and requests) every live worker understands. It reads them repeatedly
// while a sender needs to know. If a reading fails, no feature counts, and the sender works as an older release would.
import type { Clock } from '../src/clock.ts'
import { commonFeatures, type Feature, SPEAKING, type Speaking } from '../src/job/envelope/features.ts'
import { LIVE_KEYS } from '../src/job/envelope/live-keys.ts'
import type { Logger } from '../src/log.ts'
import type { Queues } from '../src/queue/engine.ts'
import { every } from '../src/recurring.ts'
import type { TrustedKeys } from './client/trusted-keys.ts'

export interface LiveFeatures {
  /** Whether every live worker understood the feature a few seconds ago. */
  has(feature: Feature): boolean
  /** Resolves when the first reading has succeeded or failed. */
  ready: Promise<void>
  close(): Promise<void>
}

export type ReadFeatures = () => Promise<readonly string[]>

export interface WatchOptions {
  log: Logger
  everyMs?: number | undefined
  /** A feature counts only after all readings over this many ms have named it. */
  settleMs?: number | undefined
}

/** Reads at once, and then every 5 s. */
export function watchFeatures(
  read: ReadFeatures,
  { log, everyMs = LIVE_KEYS.everyMs, settleMs = 0 }: WatchOptions,
): LiveFeatures {
  /** Feature → since when all readings have named it, in ms of performance.now(). */
  let since = new Map<string, number>()
  const readOnce = async () => {
    const named = await read().catch(error => {
      since = new Map()
      throw error
    })
    const now = performance.now()
    since = new Map(named.map(word => [word, since.get(word) ?? now]))
  }
  const ready = Promise.withResolvers<void>()
  const close = every(everyMs, () => readOnce().finally(ready.resolve), { log, firstMs: 0 })
  return {
    has: feature => performance.now() - (since.get(feature) ?? Number.POSITIVE_INFINITY) >= settleMs,
    ready: ready.promise,
    close,
  }
}

/** For a sender without access to the store: reads the list that workers sign. */
export function listedFeatures(
  queues: Pick<Queues, 'notice'>,
  trusted: Pick<TrustedKeys, 'openList'>,
  clock: Clock,
): ReadFeatures {
  return async () => {
    const { text } = await queues.notice('live-keys')
    const list = text === undefined ? undefined : await trusted.openList(text)
    // An old list, put back by somebody, only says what workers understood in the past.
    const ageMs = list ? clock() - list.iat * 1000 : Number.POSITIVE_INFINITY
    return list && ageMs <= LIVE_KEYS.lifeMs && ageMs >= -LIVE_KEYS.aheadMsMax ? list.features : []
  }
}

/** How long a dead worker's announcement may still count, and one interval until the next reading. */
export const STORED_SETTLE_MS = SPEAKING.freshMs + LIVE_KEYS.everyMs

/**
 * For a sender with access to the store: reads what workers announce there. `list` returns the workers that were silent
 * for less than `ms`.
 */
export function storedFeatures(
  queues: Pick<Queues, 'workersOfAll'>,
  list: (ms: number) => Promise<readonly Speaking[]>,
): ReadFeatures {
  return async () => commonFeatures(queues, await list(SPEAKING.countedMs))
}
