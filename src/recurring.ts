// A recurring task: run, wait, run again. A failed run is logged, and the next run follows all the same. A fault or a
// lost race may pass by itself, so only some of its repetitions are warnings; any other error is logged as an error
// each time.
import { Fault } from './errors.ts'
import { describeError, type Logger } from './logger.ts'
import { levelOfFailure } from './server-error.ts'

/** Failures that may pass are warned of once in about this time, in ms, and once in so many at least. */
const QUIET = { ms: 100_000, failures: 100 }

interface RecurringOptions {
  log: Logger
  /** When the first run starts, instead of after `ms`; 0: at once. */
  firstMs?: number
}

/**
 * Runs `work` repeatedly, each time `ms` after the run before has ended. Returns a function that stops it and waits for
 * a run under way.
 */
export function every(
  ms: number,
  work: () => Promise<unknown>,
  { log, firstMs = ms }: RecurringOptions,
): () => Promise<void> {
  let stopped = false
  let timer: NodeJS.Timeout | undefined
  let running: Promise<void> = Promise.resolve()
  let failures = 0
  const turn = () => {
    running = work()
      .then(() => {
        failures = 0
      })
      .catch(error => {
        const level = levelOf(error, failures, ms)
        failures += 1
        log[level]({ error: describeError(error), failures }, 'a recurring task failed and will be tried again')
      })
      .finally(() => {
        if (!stopped) timer = setTimeout(turn, ms)
      })
  }
  if (firstMs === 0) turn()
  else timer = setTimeout(turn, firstMs)
  return async () => {
    stopped = true
    clearTimeout(timer)
    await running
  }
}

/**
 * A fault or a lost race is a warning at the first failure and once in a while afterwards, else `debug`. `failures`: how
 * many runs in a row failed before; there are `ms` between two.
 */
function levelOf(error: unknown, failures: number, ms: number): 'error' | 'warn' | 'debug' {
  if (levelOfFailure(error) === 'debug') return 'debug'
  // Recognised by its name, because the class LostRace is in a higher room (store). The next run usually succeeds.
  const isLostRace = error instanceof Error && error.name === 'LostRace'
  const mayPass = isLostRace || (error instanceof Fault && error.code !== 'defect')
  if (!mayPass) return 'error'
  const quiet = Math.min(QUIET.failures, Math.ceil(QUIET.ms / ms))
  return failures % quiet === 0 ? 'warn' : 'debug'
}
