// Waits for a condition with a deadline: tests use it instead of sleeping. Repeats what a standstill of this process spoiled.
import { setTimeout as pause } from 'node:timers/promises'

export interface UntilOptions {
  /**
   * The deadline in ms (300,000). It only ends what would never end: no machine is so slow. A shorter one is for what has to
   * stay away.
   */
  ms?: number
  /** What is awaited, for the error. */
  what?: string
}

/**
 * The pause between two looks: `looks` times as long as a look took, within these limits, so that looks don't load a
 * server.
 */
const PAUSE_MS = { least: 10, most: 100, looks: 4 }

/** Of a turn that took longer, because this process stood still, only so much counts towards the deadline, in ms. */
const TURN_MS = 1_000
/** Whatever stood still, it ends before the test does. */
const MS_MOST = 570_000

/** The first truthy answer of `condition`. Throws at the deadline, or as `condition` throws. */
export async function until<T>(
  condition: () => T | Promise<T>,
  options: UntilOptions = {},
): Promise<Exclude<T, undefined | null | false | 0 | ''>> {
  const { ms = 300_000, what = 'the condition' } = options
  const began = performance.now()
  let at = began
  let counted = 0
  for (;;) {
    const lookedAt = performance.now()
    const value = await condition()
    if (value) return value as Exclude<T, undefined | null | false | 0 | ''>
    const now = performance.now()
    counted += Math.min(now - at, TURN_MS)
    at = now
    if (counted > ms || now - began > Math.max(ms, MS_MOST))
      throw new Error(`${what} did not come true within ${ms} ms`)
    await pause(Math.min(PAUSE_MS.most, Math.max(PAUSE_MS.least, PAUSE_MS.looks * (now - lookedAt))))
  }
}

/**
 * The answer of `work`. If it throws, and this process stood still for `ms` or longer while it ran, it is done anew, up to
 * `tries` times in all.
 */
export async function steady<T>(ms: number, work: () => Promise<T>, tries = 5): Promise<T> {
  for (let n = 1; ; n += 1) {
    let gap = 0
    let at = performance.now()
    const look = () => {
      const now = performance.now()
      gap = Math.max(gap, now - at)
      at = now
    }
    const timer = setInterval(look, 20)
    try {
      return await work()
    } catch (error) {
      look()
      if (n === tries || gap < ms) throw error
    } finally {
      clearInterval(timer)
    }
  }
}
