// Jobs with damaged fields, which anybody who may write to the server can make: BullMQ can neither read nor finish
// them, and would hand them out for ever. This file recognises such a failure and starts the search for those jobs.
// Each engine knows what damage is (redis-damage.ts, postgres.ts).

/** How often a job may stall before it is given up. */
export const STALLED_MAX = 5

/** The errors of BullMQ, Redis and PostgreSQL for a field that isn't JSON, or a counter that can't be increased. */
export function isDamage(error: unknown): boolean {
  if (error instanceof SyntaxError || error instanceof TypeError) return true
  const { message = '', code } = (error ?? {}) as { message?: string; code?: unknown }
  return code === '22003' || /hash value is not an integer|increment or decrement would overflow/.test(message)
}

interface DamageWatch {
  /** Call with every error between worker and server. */
  note(error: unknown): void
}

/** `discard` removes damaged jobs and returns how many; `onDamaged` gets that number. One search at a time. */
export function watchDamage(discard: () => Promise<number>, onDamaged: (jobs: number) => void): DamageWatch {
  let looking = false
  return {
    note(error) {
      if (looking || !isDamage(error)) return
      looking = true
      discard()
        .then(jobs => jobs > 0 && onDamaged(jobs))
        // The next error starts another search.
        .catch(() => {})
        .finally(() => {
          looking = false
        })
    },
  }
}
