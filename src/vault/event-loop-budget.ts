// Decides when a decryption may block the event loop. A process has one event loop, so there is one budget. What is
// decrypted is unknown here.
import { setImmediate } from 'node:timers/promises'

/** How long decryptions may run without a pause before other work gets its turn, in ms. */
const EVENT_LOOP_BUDGET_MS = 5
/** For this many ms after a decryption for which somebody waited, background work gets one decryption per turn. */
const RECENT_MS = 1_000

let runEnds = 0
let opening: Promise<void> | undefined
/** How many decryptions of jobs that aren't background work are waiting. */
let urgent = 0
let urgentAt = Number.NEGATIVE_INFINITY
/** Whether background work has had its decryption of this turn. */
let isBackgroundServed = false

/**
 * Runs `work` at once while the budget lasts, else after a turn of the event loop; the order isn't kept. Decrypting a
 * card blocks the event loop for a third of a millisecond: a batch with hundreds of cards would delay lock renewals and
 * other jobs. `isBackground`: the work waits while decryptions of other jobs wait. For a second after such a job asked
 * for one, all background work together gets one decryption per turn of the event loop.
 */
export async function withinEventLoopBudget<T>(work: () => T, { isBackground }: Urgency): Promise<Awaited<T>> {
  if (!isBackground) {
    urgent += 1
    urgentAt = performance.now()
  }
  // There is no await between this check and `work`, so of hundreds that wait only those within the budget go on.
  while (performance.now() > runEnds || (isBackground && mustWait())) await nextTurn()
  if (isBackground) isBackgroundServed = true
  else urgent -= 1
  return await work()
}

/**
 * Runs `work` for each item, in their order, as work for which somebody waits, but without a promise for each: a chunk has a
 * thousand cards. At each turn of the event loop at least one is done, after those of single jobs that waited for the turn.
 * `work` may return a promise, which is awaited.
 */
export async function eachWithinEventLoopBudget<T>(
  items: readonly T[],
  work: (item: T) => Promise<void> | void,
): Promise<void> {
  urgent += 1
  try {
    for (const item of items) {
      urgentAt = performance.now()
      if (urgentAt > runEnds) {
        await nextTurn()
        // The jobs that wait for the same turn continue first.
        await undefined
      }
      const rest = work(item)
      if (rest) await rest
    }
  } finally {
    urgent -= 1
  }
}

function nextTurn(): Promise<void> {
  opening ??= setImmediate().then(() => {
    runEnds = performance.now() + EVENT_LOOP_BUDGET_MS
    isBackgroundServed = false
    opening = undefined
  })
  return opening
}

function mustWait(): boolean {
  return urgent > 0 || (isBackgroundServed && performance.now() - urgentAt < RECENT_MS)
}

export interface Urgency {
  /** Nobody waits for the job: it was sent with a priority, as `submit` sends its jobs. */
  isBackground: boolean
}
