// Jobs whose own fields were damaged, by whoever may write to the server: BullMQ can neither read them nor finish them, and
// would hand them out for ever. Here is how such a failure is told from others, and who looks for the jobs then. What
// damage is, each engine knows (redis-damage.ts, postgres.ts).

/** How often a job may stall before it is given up. */
export const STALLED_MAX = 5

/** What BullMQ, Redis and PostgreSQL say where a field isn't JSON, or a counter can't be counted on. */
export function isDamage(error: unknown): boolean {
  if (error instanceof SyntaxError || error instanceof TypeError) return true
  const { message = '', code } = (error ?? {}) as { message?: string; code?: unknown }
  return code === '22003' || /hash value is not an integer|increment or decrement would overflow/.test(message)
}

interface DamageWatch {
  /** To be told of every error between worker and server. */
  note(error: unknown): void
}

/** `discard` takes damaged jobs off and answers how many; `onDamaged` is told of each. One look at a time. */
export function watchDamage(discard: () => Promise<number>, onDamaged: (jobs: number) => void): DamageWatch {
  let looking = false
  return {
    note(error) {
      if (looking || !isDamage(error)) return
      looking = true
      discard()
        .then(jobs => jobs > 0 && onDamaged(jobs))
        // The next error asks again.
        .catch(() => {})
        .finally(() => {
          looking = false
        })
    },
  }
}
