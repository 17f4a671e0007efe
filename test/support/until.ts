// Waits for a condition with a deadline: tests use it instead of sleeping. Repeats what a standstill of this process spoiled.
import { setTimeout as pause } from 'node:timers/promises'

export interface UntilOptions {
  /** The deadline in ms (300,000). It only ends what would never end. A shorter one is for what has to stay away. */
  ms?: number
  /**
   * How far the awaited work is. Each time that this changes, the deadline begins anew: so work of any length is awaited on a
   * machine of any speed, and what stands still is given up.
   */
  progress?: () => unknown
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
/** A standstill of this process doesn't make a deadline longer than this. */
const MS_MOST = 570_000

/** The first truthy answer of `condition`. Throws at the deadline, or as `condition` throws. */
export async function until<T>(
  condition: () => T | Promise<T>,
  options: UntilOptions = {},
): Promise<Exclude<T, undefined | null | false | 0 | ''>> {
  const { ms = 300_000, what = 'the condition', progress = () => undefined } = options
  let at = performance.now()
  let movedAt = at
  let counted = 0
  let last = progress()
  for (;;) {
    const lookedAt = performance.now()
    const value = await condition()
    if (value) return value as Exclude<T, undefined | null | false | 0 | ''>
    const now = performance.now()
    counted += Math.min(now - at, TURN_MS)
    at = now
    const seen = progress()
    if (seen !== last) {
      last = seen
      movedAt = now
      counted = 0
    }
    if (counted > ms || now - movedAt > Math.max(ms, MS_MOST)) throw new Error(givenUp(what, ms, last))
    await pause(Math.min(PAUSE_MS.most, Math.max(PAUSE_MS.least, PAUSE_MS.looks * (now - lookedAt))))
  }
}

function givenUp(what: string, ms: number, last: unknown): string {
  return last === undefined
    ? `${what} did not come true within ${ms} ms`
    : `${what} did not come true, and nothing moved for ${ms} ms; the last progress: ${last}`
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
