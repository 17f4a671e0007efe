// Waits for a condition with a deadline. Tests use it instead of sleeping.
import { setTimeout as pause } from 'node:timers/promises'

export interface UntilOptions {
  /** The deadline in ms (60,000). */
  ms?: number
  /** What is awaited, for the error. */
  what?: string
}

/**
 * The pause between two looks: `looks` times as long as a look took, within these limits, so that looks don't load a
 * server.
 */
const PAUSE_MS = { least: 10, most: 100, looks: 4 }

/** The first truthy answer of `condition`. Throws at the deadline, or as `condition` throws. */
export async function until<T>(
  condition: () => T | Promise<T>,
  options: UntilOptions = {},
): Promise<Exclude<T, undefined | null | false | 0 | ''>> {
  const { ms = 60_000, what = 'the condition' } = options
  const deadline = performance.now() + ms
  for (;;) {
    const lookedAt = performance.now()
    const value = await condition()
    if (value) return value as Exclude<T, undefined | null | false | 0 | ''>
    const now = performance.now()
    if (now > deadline) throw new Error(`${what} did not come true within ${ms} ms`)
    await pause(Math.min(PAUSE_MS.most, Math.max(PAUSE_MS.least, PAUSE_MS.looks * (now - lookedAt))))
  }
}
