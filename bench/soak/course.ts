// What a soak of the console sees over time: how long requests take, which were answered otherwise than they should, and the
// memory of a process.
import { setTimeout as pause } from 'node:timers/promises'
import { PROGRESS_MS } from './run.ts'

export interface Course {
  took(what: string, ms: number): void
  /** Does the work and notes how long it took. */
  timed<T>(what: string, work: () => Promise<T>): Promise<T>
  other(what: string, status: number): void
  /** Notes memory until it is over, and prints how it goes once a minute. */
  observe(goesOn: () => boolean): Promise<void>
  /** Prints counts and p50, p95, p99 of each; returns what was answered otherwise, by request. */
  tell(): { others: Record<string, number>; counts: Record<string, number> }
  /** The lowest memory of each minute, in MiB. */
  lowest(): readonly number[]
}

const MINUTE_MS = 60_000

export function openCourse(resident: () => number): Course {
  const times = new Map<string, number[]>()
  const others: Record<string, number> = {}
  /** The lowest of each minute, in MiB. */
  const lowest: number[] = []
  const began = performance.now()
  const took = (what: string, ms: number) => void (times.get(what)?.push(ms) ?? times.set(what, [ms]))
  const tell: Course['tell'] = () => {
    for (const [what, all] of times) {
      const sorted = all.toSorted((a, b) => a - b)
      const at = (part: number) => (sorted[Math.floor((sorted.length - 1) * part)] ?? 0).toFixed(0)
      process.stdout.write(
        `  console: ${what}: ${all.length}, p50 ${at(0.5)} ms, p95 ${at(0.95)} ms, p99 ${at(0.99)} ms\n`,
      )
    }
    process.stdout.write(
      `  console: lowest memory of each minute: ${lowest.map(mib => mib.toFixed(0)).join(' ')} MiB\n`,
    )
    return { others, counts: Object.fromEntries([...times].map(([what, all]) => [what, all.length])) }
  }
  return {
    took,
    async timed(what, work) {
      const from = performance.now()
      const done = await work()
      took(what, performance.now() - from)
      return done
    },
    other(what, status) {
      const name = `${what.split('?')[0]} ${status}`
      others[name] = (others[name] ?? 0) + 1
    },
    async observe(goesOn) {
      let told = began
      while (goesOn()) {
        const now = performance.now()
        const minute = Math.floor((now - began) / MINUTE_MS)
        lowest[minute] = Math.min(lowest[minute] ?? Number.POSITIVE_INFINITY, resident())
        if (now - told >= MINUTE_MS) {
          told = now
          tell()
        }
        await pause(PROGRESS_MS / 10)
      }
    },
    tell,
    lowest: () => lowest,
  }
}

/**
 * By how many MiB memory grew, from this minute on, between the lowest values of the first and of the second half. What is
 * collected comes back within some minutes, so a half must be longer than that.
 */
export function growthOf(lowest: readonly number[], fromMinute: number): number {
  // The last minute may be short.
  const points = lowest.slice(fromMinute, -1)
  const half = Math.floor(points.length / 2)
  return Math.min(...points.slice(half)) - Math.min(...points.slice(0, half))
}
