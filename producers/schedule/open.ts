// The schedule of one process: ticks that come by the queue, a clock of its own in case they don't, and the answers. The
// tick is a courtesy and holds nothing; whoever forges one makes us look, which we do anyway.
import { describeError } from '../../src/log.ts'
import * as runs from '../../src/store/report/schedule-runs.ts'
import { dateOf } from './business-dates.ts'
import type { ScheduleDeps } from './deps.ts'
import { look } from './due-runs.ts'
import { openSweeper } from './expiry.ts'
import { openAnswers } from './system-results.ts'

export const TICKS = 'schedule-tick'
const DAY_MS = 86_400_000
const LOOK_MS = 60_000
/** However many ticks come, looks are this far apart. */
const LOOKS_APART_MS = 1_000
const CLOSE_MS = 5_000

export interface Schedule {
  /** Once it listens to ticks and answers. */
  ready: Promise<void>
  /** Looks now, or waits for the look that is under way. Throws a Fault. */
  look(): Promise<void>
  close(): Promise<void>
}

export function openSchedule(deps: ScheduleDeps): Schedule {
  const { store, queues, log, clock, settings } = deps
  const sweeper = openSweeper(deps)
  const answers = openAnswers(deps, sweeper)
  let looking: Promise<void> | undefined
  let turning: Promise<void> | undefined
  let lookedAt = Number.NEGATIVE_INFINITY
  let failures = 0
  let closed = false
  let timer: NodeJS.Timeout | undefined
  let timerAt = Number.POSITIVE_INFINITY

  function lookNow(): Promise<void> {
    looking ??= look(deps, sweeper.take)
      .then(async () => {
        await runs.forget(store, dateOf(clock() - settings.keepDays * DAY_MS))
        failures = 0
      })
      .finally(() => {
        looking = undefined
        lookedAt = performance.now()
      })
    return looking
  }
  async function turn(): Promise<void> {
    await lookNow().catch(error => {
      // Said at the first failure of a row: the next look is a minute away.
      log[failures === 0 ? 'warn' : 'debug']({ error: describeError(error) }, 'what is due could not be looked at')
      failures += 1
    })
    if (!closed) await queues.tick(TICKS).catch(error => log.debug({ err: error }, 'a tick was not laid'))
    turnIn(LOOK_MS)
  }
  /** The next turn, unless one comes earlier. */
  function turnIn(ms: number): void {
    const at = performance.now() + ms
    if (closed || at >= timerAt) return
    clearTimeout(timer)
    timerAt = at
    timer = setTimeout(() => {
      timerAt = Number.POSITIVE_INFINITY
      turning = turn()
    }, ms)
  }
  const ticks = queues.work(
    TICKS,
    async () => {
      turnIn(Math.max(0, lookedAt + LOOKS_APART_MS - performance.now()))
      return { done: true }
    },
    { concurrency: 1 },
  )
  turnIn(0)

  return {
    ready: Promise.all([ticks.ready, ...answers.map(inbox => inbox.ready)]).then(() => {}),
    look: lookNow,
    async close() {
      closed = true
      clearTimeout(timer)
      await Promise.all([ticks.close(CLOSE_MS), sweeper.close()])
      await turning
      await looking?.catch(() => {})
      await Promise.all(answers.map(inbox => inbox.close(CLOSE_MS)))
    },
  }
}
