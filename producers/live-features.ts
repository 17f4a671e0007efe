// Which members of envelopes every live worker understands, as far as this sender knows. It asks again and again while
// somebody needs to know, and knows nothing where it can't tell: then the sender does as older releases did.
import type { Clock } from '../src/clock.ts'
import { commonFeatures, type Feature, SPEAKING, type Speaking } from '../src/job/envelope/features.ts'
import { LIVE_KEYS, openLiveKeys } from '../src/job/envelope/live-keys.ts'
import type { Logger } from '../src/log.ts'
import type { Queues } from '../src/queue/engine.ts'
import { every } from '../src/recurring.ts'
import type { Credentials } from './client-file.ts'

export interface LiveFeatures {
  /** Whether every live worker understood it a few seconds ago. */
  has(feature: Feature): boolean
  /** The first reading is done, or failed. */
  ready: Promise<void>
  close(): Promise<void>
}

export type ReadFeatures = () => Promise<readonly string[]>

export interface WatchOptions {
  log: Logger
  everyMs?: number | undefined
  /** A feature is known once every reading has named it for this long. */
  settleMs?: number | undefined
}

/** Reads at once and then every 5 s. */
export function watchFeatures(
  read: ReadFeatures,
  { log, everyMs = LIVE_KEYS.everyMs, settleMs = 0 }: WatchOptions,
): LiveFeatures {
  /** Since when each was named, by performance.now(). */
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
  const close = every(everyMs, () => readOnce().finally(ready.resolve), { log, atOnce: true })
  return {
    has: feature => performance.now() - (since.get(feature) ?? Number.POSITIVE_INFINITY) >= settleMs,
    ready: ready.promise,
    close,
  }
}

/** For a sender without a store: by the list that workers sign. */
export function listedFeatures(
  queues: Pick<Queues, 'notice'>,
  { audience, installationKeys }: Pick<Credentials, 'audience' | 'installationKeys'>,
  clock: Clock,
): ReadFeatures {
  return async () => {
    const { text } = await queues.notice('live-keys')
    const list = text === undefined ? undefined : openLiveKeys(text, audience, installationKeys)
    // A list that was put back says what workers understood once.
    const ageMs = list ? clock() - list.iat * 1000 : Number.POSITIVE_INFINITY
    return list && ageMs <= LIVE_KEYS.lifeMs && ageMs >= -LIVE_KEYS.aheadMsMax ? list.features : []
  }
}

/** After a kill the dead worker's word is fresh for so long, and one beat passes until the next reading. */
export const STORED_SETTLE_MS = SPEAKING.freshMs + LIVE_KEYS.everyMs

/** For a sender with the store: by what workers say of themselves there. `list` lists those that weren't silent for so many ms. */
export function storedFeatures(
  queues: Pick<Queues, 'workersOfAll'>,
  list: (ms: number) => Promise<readonly Speaking[]>,
): ReadFeatures {
  return async () => commonFeatures(queues, await list(SPEAKING.countedMs))
}
