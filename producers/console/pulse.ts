// Whether what works is seen, as every page needs it that would else say well of what nobody sees. Heartbeats and the looks of the
// scheduler tell it; they are in the store (src/store/console/now.ts).
import type { BatchState } from '../../src/job/choices.ts'
import type { Pulse } from '../../src/store/console/now.ts'
import type { ShownState } from './state-mark.ts'

/**
 * What was silent for longer isn't counted on, in ms. A heartbeat comes every 5 s; a look of the scheduler every 3 s, and takes 4 s
 * at most. An open page is told every 2 s, so that it says `unknown` 10 s after the last sign.
 */
export const HEARD_MS = 8_000

const isHeardWithin = (ms: number | null) => ms !== null && ms <= HEARD_MS

/** A worker was heard just now. */
export const isHeard = ({ heardMs }: Pick<Pulse, 'heardMs'>): boolean => isHeardWithin(heardMs)

/** A scheduler has looked just now. */
export const isWatched = ({ watchedMs }: Pick<Pulse, 'watchedMs'>): boolean => isHeardWithin(watchedMs)

type BatchPulse = Pick<Pulse, 'watchedMs' | 'batchesHeardMs' | 'areServersOut'>

/** Whether it is seen that batches go on: all that works on them was heard, and the queue server answers. */
export function seesBatches({ watchedMs, batchesHeardMs, areServersOut }: BatchPulse): boolean {
  return isHeardWithin(watchedMs) && isHeardWithin(batchesHeardMs) && !areServersOut
}

/** Since when it is not; undefined: nobody saw when that began. */
export function unseenSince({ watchedMs, batchesHeardMs }: BatchPulse, now: number): number | undefined {
  const ages = [watchedMs, batchesHeardMs].filter(ms => ms !== null && ms > HEARD_MS)
  return ages.length === 0 ? undefined : now - Math.max(...ages.map(ms => ms ?? 0))
}

/** Whether it is seen that this batch goes on: batches do, or a chunk of it was answered just now. */
export function isSeenGoing({ activeAt }: { activeAt: number }, pulse: BatchPulse, now: number): boolean {
  return now - activeAt <= HEARD_MS || seesBatches(pulse)
}

/** The state that a page shows. RUNNING is seen by nobody while what works on batches isn't. */
export function shownStateOf(state: BatchState, isSeen: boolean): ShownState {
  return state === 'RUNNING' && !isSeen ? 'UNKNOWN' : state
}
