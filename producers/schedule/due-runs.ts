// Makes the runs that are due and sends their jobs. Several processes may do this at the same time: a claim on the
// run's row decides which one sends its job.

import { CATCH_UP_DATES, datesWithoutRun } from '../../src/job/schedule/business-dates.ts'
import { isZone } from '../../src/job/schedule/zone-time.ts'
import * as clients from '../../src/store/access/clients.ts'
import { dueRuns, entitiesOf } from '../../src/store/report/new-runs.ts'
import * as runs from '../../src/store/report/schedule-runs.ts'
import * as schedules from '../../src/store/report/schedules.ts'
import type { ScheduleDeps } from './deps.ts'
import type { SendingDeps } from './own-jobs.ts'
import { sendReport } from './report-run.ts'
import { noteEnd, noteLate } from './run-notes.ts'

const DAY_MS = 86_400_000
const PAGE = 100
/** How many reports may be requested and not made yet; further runs wait in the store. */
const IN_FLIGHT_MAX = 1_000
/** After this many ms an unanswered run is sent again; the pause grows with each attempt, up to ten times as long. */
const RESEND_MS = 60_000
const RESENDS_SLOWER_MAX = 10

/** Makes the due runs and sends their jobs. `sweep` starts a claimed run of an expiry sweep. */
export async function dispatchDueRuns(deps: SendingDeps, sweep: (run: runs.Run) => void): Promise<void> {
  const { store, clock } = deps
  const known = await schedules.list(store)
  for (const schedule of known) await makeRuns(schedule, deps)
  await noteLateRuns(deps)
  for (const fresh of [false, true]) {
    for (;;) {
      if (fresh && (await runs.countQueued(store)) >= IN_FLIGHT_MAX) break
      const claimed = await runs.claim(store, { now: clock(), leaseMs: RESEND_MS, limit: PAGE, fresh })
      for (const run of claimed) await dispatch(run, deps, sweep)
      if (claimed.length < PAGE) break
    }
  }
}

async function makeRuns(schedule: schedules.Schedule, { store, clock, log }: ScheduleDeps): Promise<void> {
  const { scheduleId, zone } = schedule
  // The command refuses such a zone. But a Node whose list of zones is another one may have come later.
  if (!isZone(zone)) {
    log.error({ schedule: scheduleId, zone }, 'a schedule makes no run: this Node does not know its time zone')
    return
  }
  const now = clock()
  if (datesWithoutRun(schedule, now).length === 0) return
  await runs.insert(store, dueRuns(schedule, await entitiesOf(schedule, { store }), now))
}

async function noteLateRuns(deps: ScheduleDeps): Promise<void> {
  const { store, clock, settings, metrics } = deps
  const now = clock()
  for (const run of await runs.giveUp(store, now - CATCH_UP_DATES * DAY_MS)) noteEnd(run, deps)
  for (const run of await runs.markLate(store, now - settings.lateMs, now)) noteLate(run, deps)
  const { oldestDueAt = now, late } = await runs.measureOpen(store)
  metrics.oldestDue.set(Math.max(0, now - oldestDueAt) / 1000)
  metrics.lateRuns.set(late)
}

async function dispatch(run: runs.Run, deps: SendingDeps, sweep: (run: runs.Run) => void): Promise<void> {
  const { store, clock } = deps
  const schedule = await schedules.find(store, run.scheduleId)
  if (!schedule) return
  // It was paused after the run was claimed. The run begins when it is resumed.
  if (schedule.pausedAt !== null && run.state === 'DUE') return
  if (schedule.kind === 'token-expiry') return sweep(run)
  const impossible = await sendReport(run, schedule, await clients.find(store, schedule.clientId), deps)
  if (impossible === undefined) {
    await runs.markQueued(store, run, clock() + RESEND_MS * Math.min(run.attempts, RESENDS_SLOWER_MAX))
    return
  }
  const failed = await runs.fail(store, run, impossible)
  if (failed) noteEnd(failed, deps)
}
