// Decides which RSA decryption goes to Node's thread pool next. One takes a quarter of a millisecond of a core: in the pool it
// doesn't block the event loop, and a process that works single jobs uses more than one core. What is decrypted is unknown here.
import { availableParallelism } from 'node:os'
import type { Urgency } from './event-loop-budget.ts'

/** How many run at once. The pool has four threads, of which files and look-ups of names need some. */
const AT_ONCE_MAX = Math.min(availableParallelism(), 3)
/** For this many ms after work for which somebody waits, background work runs one at a time. */
const RECENT_MS = 1_000

interface Waiting {
  urgent: (() => void)[]
  background: (() => void)[]
}

const waiting: Waiting = { urgent: [], background: [] }
let running = 0
let urgentAt = Number.NEGATIVE_INFINITY

/**
 * Calls `work`, which hands something to the thread pool, when it is its turn: in the order of the calls, but background work
 * after all other. A job for which somebody waits so finds at most `AT_ONCE_MAX` decryptions before it.
 */
export async function inThreadPool<T>(work: () => Promise<T>, { isBackground }: Urgency): Promise<T> {
  if (!isBackground) urgentAt = performance.now()
  const { promise: turn, resolve } = Promise.withResolvers<void>()
  waiting[isBackground ? 'background' : 'urgent'].push(resolve)
  startNext()
  await turn
  try {
    return await work()
  } finally {
    running -= 1
    startNext()
  }
}

function startNext(): void {
  while (running < AT_ONCE_MAX) {
    const next = waiting.urgent.shift() ?? (isBackgroundsTurn() ? waiting.background.shift() : undefined)
    if (!next) return
    running += 1
    next()
  }
}

function isBackgroundsTurn(): boolean {
  return running === 0 || performance.now() - urgentAt > RECENT_MS
}
