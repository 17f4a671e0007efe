// What a soak of the console sees over time: how long requests take, which were answered otherwise than they should, and the
// memory of a process.
import { setTimeout as pause } from 'node:timers/promises'

export interface Course {
  took(what: string, ms: number): void
  /** Does the work and notes how long it took. */
  timed<T>(what: string, work: () => Promise<T>): Promise<T>
  other(what: string, status: number): void
  /** Once a minute has the process collect its garbage, notes its memory, and prints how it goes. Until it is over. */
  observe(goesOn: () => boolean): Promise<void>
  /** Prints counts and p50, p95, p99 of each; returns what was answered otherwise, by request. */
  tell(): { others: Record<string, number>; counts: Record<string, number> }
  /** The memory of each minute, in MiB. */
  memory(): readonly number[]
}

const MINUTE_MS = 60_000
const PAUSE_MS = 1_000

/** `measure`: the memory of the process, once its garbage is collected, in MiB. */
export function openCourse(measure: () => Promise<number>): Course {
  const times = new Map<string, number[]>()
  const others: Record<string, number> = {}
  const memory: number[] = []
  const took = (what: string, ms: number) => void (times.get(what)?.push(ms) ?? times.set(what, [ms]))
  const tell: Course['tell'] = () => {
    for (const [what, all] of times) {
      const sorted = all.toSorted((a, b) => a - b)
      const at = (part: number) => (sorted[Math.floor((sorted.length - 1) * part)] ?? 0).toFixed(0)
      process.stdout.write(
        `  console: ${what}: ${all.length}, p50 ${at(0.5)} ms, p95 ${at(0.95)} ms, p99 ${at(0.99)} ms\n`,
      )
    }
    process.stdout.write(`  console: memory of each minute: ${memory.map(mib => mib.toFixed(0)).join(' ')} MiB\n`)
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
      for (let next = performance.now() + MINUTE_MS; goesOn(); next += MINUTE_MS) {
        while (goesOn() && performance.now() < next) await pause(PAUSE_MS)
        if (!goesOn()) return
        memory.push(await measure())
        tell()
      }
    },
    tell,
    memory: () => memory,
  }
}

/** By how many MiB memory grew, from this minute on, between the lowest values of the first and of the second half. */
export function growthOf(memory: readonly number[], fromMinute: number): number {
  const points = memory.slice(fromMinute)
  const half = Math.floor(points.length / 2)
  return Math.min(...points.slice(half)) - Math.min(...points.slice(0, half))
}
