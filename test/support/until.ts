// Waiting for a condition with a deadline: what tests do in place of sleeping.
import { setTimeout as pause } from 'node:timers/promises'

export interface UntilOptions {
  /** The deadline (5,000). */
  ms?: number
  /** What is awaited, for the error. */
  what?: string
}

/** The first truthy answer of `condition`, asked every 10 ms. Throws at the deadline, or as `condition` throws. */
export async function until<T>(
  condition: () => T | Promise<T>,
  options: UntilOptions = {},
): Promise<Exclude<T, undefined | null | false | 0 | ''>> {
  const { ms = 5_000, what = 'the condition' } = options
  const deadline = performance.now() + ms
  for (;;) {
    const value = await condition()
    if (value) return value as Exclude<T, undefined | null | false | 0 | ''>
    if (performance.now() > deadline) throw new Error(`${what} did not come true within ${ms} ms`)
    await pause(10)
  }
}
