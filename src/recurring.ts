// A recurring task: run, wait, run again. A failure is logged, and the next run comes all the same. A fault may pass by
// itself and is logged seldom; a defect is logged each time.
import { Fault } from './errors.ts'
import { describeError, type Logger } from './log.ts'

const QUIET_FAILURES = 100

interface RecurringOptions {
  log: Logger
  /** The first run doesn't wait. */
  atOnce?: boolean
}

/** Runs `work` again and again, each time `ms` after it has ended. Returns a function that stops it. */
export function every(
  ms: number,
  work: () => Promise<unknown>,
  { log, atOnce = false }: RecurringOptions,
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
        const level = levelOf(error, failures)
        failures += 1
        log[level]({ error: describeError(error), failures }, 'a recurring task failed and will be tried again')
      })
      .finally(() => {
        if (!stopped) timer = setTimeout(turn, ms)
      })
  }
  if (atOnce) turn()
  else timer = setTimeout(turn, ms)
  return async () => {
    stopped = true
    clearTimeout(timer)
    await running
  }
}

/** A fault is told at the first failure of a row, and seldom after that. `failures`: those before it. */
function levelOf(error: unknown, failures: number): 'error' | 'warn' | 'debug' {
  // By its name, since a lost race is the store's, a higher room: it passes with the next run, too.
  const isLostRace = error instanceof Error && error.name === 'LostRace'
  const mayPass = isLostRace || (error instanceof Fault && error.code !== 'defect')
  if (!mayPass) return 'error'
  return failures % QUIET_FAILURES === 0 ? 'warn' : 'debug'
}
