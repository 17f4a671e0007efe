// Decides when a decryption may block the event loop. A process has one event loop, so there is one budget. What is
// decrypted is unknown here.
import { setImmediate } from 'node:timers/promises'

/** How long decryptions may run without a pause before other work gets its turn, in ms. */
const EVENT_LOOP_BUDGET_MS = 5

let runEnds = 0
let opening: Promise<void> | undefined
/** How many decryptions of jobs that aren't background work are waiting. */
let urgent = 0

/**
 * Runs `work` at once while the budget lasts, else after a turn of the event loop; the order isn't kept. Decrypting a
 * card blocks the event loop for a third of a millisecond: a batch with hundreds of cards would delay lock renewals and
 * other jobs. `isBackground`: all other work comes first.
 */
export async function withinEventLoopBudget<T>(work: () => T, { isBackground }: Urgency): Promise<Awaited<T>> {
  const own = isBackground ? 0 : 1
  urgent += own
  // There is no await between this check and `work`, so of hundreds that wait only those within the budget go on.
  while (performance.now() > runEnds || (isBackground && urgent > 0)) {
    opening ??= setImmediate().then(() => {
      runEnds = performance.now() + EVENT_LOOP_BUDGET_MS
      opening = undefined
    })
    await opening
  }
  urgent -= own
  return await work()
}

export interface Urgency {
  /** Nobody waits for the job: it was sent with a priority, as `submit` sends its jobs. */
  isBackground: boolean
}
