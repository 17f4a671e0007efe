// Whose turn it is on the event loop. Decrypting a card holds it for a third of a millisecond; a batch that opens hundreds
// would hold it for as long as it lasts, and lock renewal and other jobs would wait. It isn't a queue: there is no order.
import { setImmediate } from 'node:timers/promises'

/** How long decryptions may follow one another before others are let in. */
const RUN_MS_MAX = 5

// The event loop is one per process, and so is this.
let runEnds = 0
let opening: Promise<void> | undefined

/** Runs `work` at once while the run lasts, else after the event loop has turned. */
export async function inTurn<T>(work: () => T): Promise<Awaited<T>> {
  // Check and work without an await between them: of hundreds that wait, only those within the run go on.
  while (performance.now() > runEnds) {
    opening ??= setImmediate().then(() => {
      runEnds = performance.now() + RUN_MS_MAX
      opening = undefined
    })
    await opening
  }
  return await work()
}
