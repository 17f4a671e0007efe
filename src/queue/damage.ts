// Jobs with damaged fields. Anybody who may write to the queue server can make them. BullMQ can neither read nor finish
// them, and would hand them out for ever. This file recognises the error of such a job and starts the search for
// damaged jobs. redis-damage.ts and postgres.ts know what damage is on their engine.

/** A job that has stalled more often than this isn't run again: a worker answers it, or removes it if it is damaged. */
export const STALLED_MAX = 5

/**
 * Whether an error of BullMQ, Redis or PostgreSQL comes from a field that isn't JSON, or from a counter that can't be
 * increased.
 */
export function isDamage(error: unknown): boolean {
  if (error instanceof SyntaxError || error instanceof TypeError) return true
  const { message = '', code } = (error ?? {}) as { message?: string; code?: unknown }
  return code === '22003' || /hash value is not an integer|increment or decrement would overflow/.test(message)
}

interface DamageWatch {
  /** Call it with every error between worker and server. */
  note(error: unknown): void
}

/**
 * Starts `discard` after an error that shows damage. `discard` removes damaged jobs and returns how many; `onDamaged`
 * gets that number if it isn't 0. Only one search runs at a time.
 */
export function watchDamage(discard: () => Promise<number>, onDamaged: (jobs: number) => void): DamageWatch {
  let looking = false
  return {
    note(error) {
      if (looking || !isDamage(error)) return
      looking = true
      discard()
        .then(jobs => jobs > 0 && onDamaged(jobs))
        // A failed search is ignored: the next error starts another one.
        .catch(() => {})
        .finally(() => {
          looking = false
        })
    },
  }
}
