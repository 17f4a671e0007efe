// The schedule of one process: dispatches due runs at each tick from the queue, and by a clock of its own in case no
// tick comes. A tick holds no data: a forged tick only makes the process look for due runs, which it does anyway.

import { dateOf } from '../../src/job/schedule/business-dates.ts'
import { describeError } from '../../src/logger.ts'
import * as runs from '../../src/store/report/schedule-runs.ts'
import type { ScheduleDeps } from './deps.ts'
import { dispatchDueRuns } from './due-runs.ts'
import { openExpirySweeper } from './expiry.ts'
import { openOwnJobs } from './own-jobs.ts'
import { openSystemInboxes } from './system-results.ts'
import { openWebhookDispatcher } from './webhooks.ts'

export const TICKS = 'schedule-tick'
const DAY_MS = 86_400_000
const DISPATCH_MS = 60_000
/** The shortest pause between two dispatches, however many ticks come. */
const DISPATCH_MS_MIN = 1_000
const CLOSE_MS = 5_000

export interface Schedule {
  /** Resolves when the process listens to ticks and results. */
  ready: Promise<void>
  /** Sends due runs now; if runs are being sent already, waits for that. Throws a Fault. */
  dispatchNow(): Promise<void>
  close(): Promise<void>
}

export function openSchedule(opened: ScheduleDeps): Schedule {
  const { store, queues, log, clock, settings } = opened
  const deps = { ...opened, jobs: openOwnJobs(opened) }
  const sweeper = openExpirySweeper(deps)
  const webhooks = openWebhookDispatcher(deps)
  const inboxes = openSystemInboxes(deps, { sweeper, webhooks })
  let dispatching: Promise<void> | undefined
  let running: Promise<void> | undefined
  let dispatchedAt = Number.NEGATIVE_INFINITY
  let failures = 0
  let closed = false
  let timer: NodeJS.Timeout | undefined
  let timerAt = Number.POSITIVE_INFINITY

  function dispatch(): Promise<void> {
    dispatching ??= dispatchDueRuns(deps, sweeper.start)
      .then(async () => {
        await runs.forget(store, dateOf(clock() - settings.keepDays * DAY_MS))
        failures = 0
      })
      .finally(() => {
        dispatching = undefined
        dispatchedAt = performance.now()
      })
    return dispatching
  }
  async function round(): Promise<void> {
    await dispatch().catch(error => {
      // Only the first of several failures in a row is a warning: the next dispatch is a minute away.
      log[failures === 0 ? 'warn' : 'debug']({ error: describeError(error) }, 'what is due could not be looked at')
      failures += 1
    })
    if (!closed) await queues.tick(TICKS).catch(error => log.debug({ err: error }, 'a tick was not laid'))
    roundIn(DISPATCH_MS)
  }
  /** Schedules the next round after `ms`, unless an earlier one is scheduled. */
  function roundIn(ms: number): void {
    const at = performance.now() + ms
    if (closed || at >= timerAt) return
    clearTimeout(timer)
    timerAt = at
    timer = setTimeout(() => {
      timerAt = Number.POSITIVE_INFINITY
      running = round()
    }, ms)
  }
  const ticks = queues.work(
    TICKS,
    async () => {
      roundIn(Math.max(0, dispatchedAt + DISPATCH_MS_MIN - performance.now()))
      return { done: true }
    },
    { concurrency: 1 },
  )
  roundIn(0)

  return {
    ready: Promise.all([ticks.ready, ...inboxes.map(inbox => inbox.ready)]).then(() => {}),
    dispatchNow: dispatch,
    async close() {
      closed = true
      clearTimeout(timer)
      await Promise.all([ticks.close(CLOSE_MS), sweeper.close(), webhooks.close()])
      await running
      await dispatching?.catch(() => {})
      await Promise.all(inboxes.map(inbox => inbox.close(CLOSE_MS)))
    },
  }
}
