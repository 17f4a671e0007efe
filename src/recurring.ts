// A recurring task: run, wait, run again. A failure is logged, and the next run comes all the same.
import { describeError, type Logger } from './log.ts'

const QUIET_FAILURES = 100

/** Runs `work` again and again, each time `ms` after it has ended. Returns a function that stops it. */
export function every(ms: number, work: () => Promise<unknown>, { log }: { log: Logger }): () => Promise<void> {
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
        // Logged at the first failure of a row, and seldom after that.
        const level = failures % QUIET_FAILURES === 0 ? 'warn' : 'debug'
        failures += 1
        log[level]({ error: describeError(error), failures }, 'a recurring task failed and will be tried again')
      })
      .finally(() => {
        if (!stopped) timer = setTimeout(turn, ms)
      })
  }
  timer = setTimeout(turn, ms)
  return async () => {
    stopped = true
    clearTimeout(timer)
    await running
  }
}
