// Which members of envelopes every live worker understands, as far as this sender knows. It asks again and again while
// somebody needs to know, and knows nothing where it can't tell: then the sender does as older releases did.
import type { Clock } from '../src/clock.ts'
import { BELIEVED_MS, commonFeatures, type Feature, type Speaking } from '../src/job/envelope/features.ts'
import { LIVE_KEYS, openLiveKeys } from '../src/job/live-keys.ts'
import type { Logger } from '../src/log.ts'
import type { Queues } from '../src/queue/engine.ts'
import { every } from '../src/recurring.ts'
import type { Credentials } from './client-file.ts'

export interface LiveFeatures {
  /** Whether every live worker understood it a few seconds ago. */
  has(feature: Feature): boolean
  close(): Promise<void>
}

export type ReadFeatures = () => Promise<readonly string[]>

/** Reads at once and then every 5 s; resolves when the first reading is done, or failed. */
export async function watchFeatures(
  read: ReadFeatures,
  { log, everyMs = LIVE_KEYS.everyMs }: { log: Logger; everyMs?: number | undefined },
): Promise<LiveFeatures> {
  let known: readonly string[] = []
  const readOnce = async () => {
    known = await read().catch(error => {
      known = []
      throw error
    })
  }
  await readOnce().catch(() => {})
  const close = every(everyMs, readOnce, { log })
  return { has: feature => known.includes(feature), close }
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

/** For a sender with the store: by what workers say of themselves there. `list` lists those that weren't silent for so many ms. */
export function storedFeatures(
  queues: Pick<Queues, 'workersOf'>,
  list: (ms: number) => Promise<readonly Speaking[]>,
): ReadFeatures {
  return async () => commonFeatures(queues, await list(BELIEVED_MS))
}
