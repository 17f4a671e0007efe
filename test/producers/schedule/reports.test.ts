// Nightly reports through scheduler, queue, worker and store, on both engines: one report for a date, whichever process
// sends its job.

import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { TICKS } from '../../../producers/schedule/open.ts'
import { resumeSchedule, runSchedule } from '../../../src/acts/schedule.ts'
import { dateOf, dayAfter } from '../../../src/job/schedule/business-dates.ts'
import * as clients from '../../../src/store/access/clients.ts'
import { runsOn } from '../../../src/store/report/new-runs.ts'
import * as reports from '../../../src/store/report/reports.ts'
import * as runs from '../../../src/store/report/schedule-runs.ts'
import * as schedules from '../../../src/store/report/schedules.ts'
import { describeEngines } from '../../support/engines.ts'
import { grantAll } from '../../support/grant-all.ts'
import { ENTITY, type Installation, openInstallation } from '../../support/installation.ts'
import { until } from '../../support/until.ts'
import { backdate, type OpenedSchedule, openScheduleFor, runsOf } from './bundle.ts'

const OTHER = '7b2a6f0e-3a52-4c3b-9a57-0c1d2e3f4a5b'
const NOTHING = { waiting: 0, active: 0, delayed: 0, failed: 0 }

describeEngines('a schedule', engine => {
  let installation: Installation
  const open: OpenedSchedule[] = []
  beforeAll(async () => {
    installation = await openInstallation(engine)
    const { clientId } = installation.credentials.signingKey
    await installation.vault.store.query({
      text: 'update tokenmill.client set entities = $2::uuid[] where client_id = $1',
      values: [clientId, `{${ENTITY},${OTHER}}`],
    })
    await grantAll(installation.vault.store, installation.vault.ring)
    await installation.openWorkers({ roles: ['bulk'] })
  })
  afterAll(async () => {
    for (const schedule of open) await schedule.close()
    await installation?.close()
  })

  const openOne = async (more?: Parameters<typeof openScheduleFor>[1]) => {
    const schedule = await openScheduleFor(installation, more)
    open.push(schedule)
    return schedule
  }
  const closeAll = async () => {
    for (const schedule of open.splice(0)) await schedule.close()
  }
  const add = async (more: Partial<schedules.NewSchedule> = {}, days = 30) => {
    const scheduleId = randomUUID()
    await schedules.insert(installation.vault.store, {
      scheduleId,
      clientId: installation.credentials.signingKey.clientId,
      reportType: 'TOKEN_ACTIVITY_REPORT',
      entityId: ENTITY,
      mimeType: 'text/csv',
      parameters: {},
      time: '00:00',
      zone: 'UTC',
      ...more,
    })
    await backdate(installation, scheduleId, days)
    return scheduleId
  }
  const remove = (scheduleId: string) => schedules.remove(installation.vault.store, scheduleId)
  const settled = (scheduleId: string, count: number) =>
    until(
      async () => {
        const found = await runsOf(installation, scheduleId)
        return found.length === count && found.every(run => run.endedAt !== null) && found
      },
      { what: `${count} runs` },
    )
  const reportsOf = async () => {
    const { rows } = await installation.vault.store.query<{ n: number }>({
      text: 'select count(*)::int as n from tokenmill.report',
    })
    return rows[0]?.n
  }
  const lastDates = (count: number) => {
    const today = dateOf(Date.now())
    return Array.from({ length: count }, (_, index) => dayAfter(today, -1 - index))
  }

  it('that nobody looked at for a month makes up for its last seven nights, one report each, whatever fires and whoever looks', async () => {
    const scheduleId = await add()
    const two = [await openOne(), await openOne()]
    const forged = Array.from({ length: 50 }, (_, index) => ({
      id: `forged_${index}`,
      data: { jws: 'x', schedule: scheduleId },
    }))
    await installation.queues.addBulk(TICKS, forged)
    await Promise.all([...two, ...two].map(schedule => schedule.dispatchNow()))
    const found = await settled(scheduleId, 7)
    expect(found.map(run => run.businessDate)).toEqual(lastDates(7))
    expect(found.map(run => run.state)).toEqual(Array(7).fill('SUCCEEDED'))
    expect(new Set(found.map(run => run.reportUid)).size).toBe(7)
    for (const run of found) {
      const report = await reports.find(installation.vault.store, run.reportUid ?? '')
      expect(report).toMatchObject({ status: 'SUCCESSFUL', periodClosed: true, reportEntityUid: ENTITY })
      expect(report?.reportParameter).toEqual({ reportableDay: run.businessDate })
    }
    await Promise.all(two.map(schedule => schedule.dispatchNow()))
    expect((await runsOf(installation, scheduleId)).length).toBe(7)
    expect(await reportsOf()).toBe(7)
    // All but the last night's were late, and were said to be so once each, by one of the two.
    const late = await Promise.all(two.map(schedule => schedule.counted('late')))
    const said = two.flatMap(({ lines }) => lines.filter(line => line.includes('is late') && line.includes(scheduleId)))
    expect((late[0] ?? 0) + (late[1] ?? 0)).toBeGreaterThanOrEqual(said.length)
    expect(said.length).toBeGreaterThanOrEqual(6)
    expect(said.length).toBe(found.filter(run => run.lateAt !== null).length)
    // The results queues of the system clients are empty, and the forged ticks are gone.
    for (const queue of ['results-scheduler', 'results-worker'])
      await until(async () => Object.values(await installation.queues.depth(queue)).every(n => n === 0))
    const ticks = await until(async () => {
      const depth = await installation.queues.depth(TICKS)
      return depth.waiting + depth.active === 0 && depth
    })
    expect(ticks).toEqual({ ...NOTHING, delayed: 1 })
    await closeAll()
    await remove(scheduleId)
  })

  // The queue plays no part in the other tests, so they run on one engine.
  if (engine.name === 'redis') return

  it('of all entities makes one report for each that the client has', async () => {
    const scheduleId = await add({ entityId: null, mimeType: 'text/plain' }, 1)
    const schedule = await openOne()
    const found = await settled(scheduleId, 2)
    expect(found.map(run => run.entityId).sort()).toEqual([ENTITY, OTHER])
    expect(found.map(run => run.state)).toEqual(['SUCCEEDED', 'SUCCEEDED'])
    // The run’s row changes before the process counts it.
    await until(async () => (await schedule.counted('succeeded')) === 2)
    await closeAll()
    await remove(scheduleId)
  })

  it('whose time zone this Node does not know makes no run, which is logged, and keeps no other from its own', async () => {
    const unknown = await add({}, 1)
    await installation.vault.store.query({
      text: `update tokenmill.schedule set zone = 'Nowhere/Gone' where schedule_id = $1`,
      values: [unknown],
    })
    const scheduleId = await add({}, 1)
    const schedule = await openOne()
    const found = await settled(scheduleId, 1)
    expect(found.map(run => run.state)).toEqual(['SUCCEEDED'])
    expect(await runsOf(installation, unknown)).toEqual([])
    expect(schedule.lines.some(line => line.includes(unknown) && line.includes('Nowhere/Gone'))).toBe(true)
    await closeAll()
    await remove(scheduleId)
    await remove(unknown)
  })

  it('that failed for a missing role makes its report when the date is run again', async () => {
    const { store } = installation.vault
    const { credentials } = await installation.addClient('later-a-role', { roles: ['TOKEN_READ'] })
    const { clientId } = credentials.signingKey
    const scheduleId = await add({ clientId }, 1)
    const schedule = await openOne()
    const [failed] = await settled(scheduleId, 1)
    expect(failed).toMatchObject({ state: 'FAILED', reason: 'role_missing' })
    if (!failed) throw new Error('it is there')
    const rerun = () => {
      const by = { actor: { kind: 'machine', id: 'test' }, reason: undefined } as const
      return runSchedule(store, { scheduleId, businessDate: failed.businessDate }, by, Date.now())
    }
    expect(await rerun()).toEqual({ refused: 'role_missing' })
    await store.query({
      text: `update tokenmill.client set roles = '{REPORT_REQUEST}' where client_id = $1`,
      values: [clientId],
    })
    await grantAll(store, installation.vault.ring)
    expect(await rerun()).toEqual({ done: { runs: 1 } })
    expect(await rerun()).toEqual({ refused: 'running' })
    // Workers cache a client for some seconds and refuse the report until then.
    const made = await until(
      async () => {
        await schedule.dispatchNow()
        const [run] = await runsOf(installation, scheduleId)
        if (run?.state === 'FAILED') await rerun()
        return run?.state === 'SUCCEEDED' && run
      },
      { what: 'the report' },
    )
    expect(await reports.find(store, made.reportUid ?? '')).toMatchObject({ status: 'SUCCESSFUL' })
    expect(await rerun()).toEqual({ refused: 'stands' })
    await closeAll()
    await remove(scheduleId)
  })

  it('that is paused begins no run, and makes what it missed when it is resumed, without being late', async () => {
    const { store } = installation.vault
    const scheduleId = await add({}, 3)
    await schedules.pause(store, scheduleId)
    const schedule = await openOne()
    await schedule.dispatchNow()
    expect(await runsOf(installation, scheduleId)).toEqual([])
    const resumedAt = Date.now()
    await schedules.resume(store, scheduleId, resumedAt)
    const { lateRuns } = schedule.metrics
    await schedule.dispatchNow()
    expect((await lateRuns.get()).values).toMatchObject([{ value: 0 }])
    const made = await settled(scheduleId, 3)
    expect(made.map(run => run.state)).toEqual(['SUCCEEDED', 'SUCCEEDED', 'SUCCEEDED'])
    for (const { dueAt } of made) expect(dueAt).toBe(resumedAt)
    await closeAll()
    await remove(scheduleId)
  })

  it('that is paused begins no run that waits, and neither gives it up nor calls it late', async () => {
    const { store } = installation.vault
    const scheduleId = await add({}, 1)
    const now = Date.now()
    const plan = await schedules.find(store, scheduleId)
    const due = (daysAgo: number) => {
      const dueAt = now - daysAgo * 86_400_000 - 7_200_000
      const businessDate = dayAfter(dateOf(now), -1 - daysAgo)
      return runsOn(plan ?? expect.fail(), { businessDate, dueAt }, [ENTITY])[0] ?? expect.fail()
    }
    const [waiting, old] = [due(0), due(9)]
    expect(await runs.insert(store, [waiting, old])).toBe(2)
    await schedules.pause(store, scheduleId)
    // A scheduler may have read the schedule before it was paused.
    expect(await runs.insert(store, [due(1)])).toBe(0)
    const schedule = await openOne()
    await schedule.dispatchNow()
    for (const run of await runsOf(installation, scheduleId))
      expect(run).toMatchObject({ state: 'DUE', attempts: 0, lateAt: null, endedAt: null })
    expect((await schedule.metrics.lateRuns.get()).values).toMatchObject([{ value: 0 }])
    const troubled = await runs.listTroubled(store, { dueBefore: now, failedSince: now, limit: 10 })
    expect(troubled.filter(run => run.scheduleId === scheduleId)).toEqual([])
    const by = { actor: { kind: 'machine', id: 'test' }, reason: undefined } as const
    const resumedAt = Date.now()
    await resumeSchedule(store, scheduleId, by, resumedAt)
    await schedule.dispatchNow()
    const [made, given] = await settled(scheduleId, 2)
    expect(made).toMatchObject({ state: 'SUCCEEDED', dueAt: resumedAt, lateAt: null })
    // It is older than the seven dates that are made up for.
    expect(given).toMatchObject({ state: 'FAILED', dueAt: old.dueAt })
    await closeAll()
    await remove(scheduleId)
  })

  it('whose client may not have the report, or is gone, fails with the reason, counted and said once', async () => {
    const { credentials } = await installation.addClient('without-role', { roles: ['TOKEN_READ'] })
    const gone = await installation.addClient('gone')
    await clients.revoke(installation.vault.store, gone.credentials.signingKey.clientId)
    const failing = {
      role_missing: await add({ clientId: credentials.signingKey.clientId }, 1),
      client_revoked: await add({ clientId: gone.credentials.signingKey.clientId }, 1),
      entity_forbidden: await add({ entityId: randomUUID() }, 1),
    }
    const schedule = await openOne()
    for (const [reason, scheduleId] of Object.entries(failing)) {
      expect(await settled(scheduleId, 1)).toMatchObject([{ state: 'FAILED', reason, reportUid: null }])
    }
    await schedule.dispatchNow()
    const said = () => schedule.lines.filter(line => line.includes('a scheduled run failed')).length
    await until(async () => (await schedule.counted('failed')) === 3 && said() === 3)
    expect(schedule.lines.join('')).toContain('"reason":"entity_forbidden"')
    await closeAll()
    for (const scheduleId of Object.values(failing)) await remove(scheduleId)
  })

  it('of a scheduler whose clock is wrong fails no run: it is asked for again, and made once the clock is right', async () => {
    const { store } = installation.vault
    const scheduleId = await add({ mimeType: 'text/plain', time: '00:01' }, 1)
    // A clock that is ahead sees the run of the next date, too, if midnight is near.
    const businessDate = dayAfter(dateOf(Date.now()), -1)
    const ofDate = async () => (await runsOf(installation, scheduleId)).find(run => run.businessDate === businessDate)
    await openOne({ clock: () => Date.now() + 900_000 })
    const refused = await until(
      async () => {
        const run = await ofDate()
        return run && run.faults > 0 && run
      },
      { what: 'a refused run' },
    )
    expect(refused).toMatchObject({ state: 'FAULTED', reason: 'envelope_future', endedAt: null })
    await closeAll()
    await store.query({
      text: 'update tokenmill.schedule_run set next_at = now() where state = $1',
      values: ['FAULTED'],
    })
    await openOne()
    const ended = async () => {
      const run = await ofDate()
      return run?.endedAt && run
    }
    expect(await until(ended, { what: 'its run' })).toMatchObject({ state: 'SUCCEEDED' })
    await closeAll()
    await remove(scheduleId)
  })

  it('that was removed has its open runs given up, and a run that failed by a fault is tried again an hour later', async () => {
    const { store } = installation.vault
    const scheduleId = await add({ mimeType: 'application/pdf' }, 1)
    const businessDate = dayAfter(dateOf(Date.now()), -1)
    const receiptId = randomUUID()
    const key = { scheduleId, businessDate, entityId: ENTITY }
    await runs.insert(store, [{ ...key, receiptId, dueAt: Date.now() }])
    const now = Date.now()
    const claim = (at: number, fresh: boolean) => runs.claim(store, { now: at, leaseMs: 60_000, limit: 10, fresh })
    expect(await claim(now + 1, true)).toMatchObject([{ ...key, state: 'DUE', attempts: 1 }])
    expect(await claim(now + 1, true)).toEqual([])
    const faulted = { state: 'FAULTED', reason: 'internal', nextAt: now + 3_600_000, faultsMax: 2 } as const
    expect(await runs.applyAnswer(store, receiptId, faulted)).toMatchObject({ state: 'FAULTED', faults: 1 })
    expect(await claim(now + 3_599_000, false)).toEqual([])
    expect(await claim(now + 3_601_000, false)).toMatchObject([{ ...key, attempts: 2 }])
    expect(await runs.applyAnswer(store, receiptId, faulted)).toMatchObject({ state: 'FAILED', faults: 2 })
    // A late answer says that the report was made.
    const made = { state: 'SUCCEEDED', reportUid: receiptId } as const
    expect(await runs.applyAnswer(store, receiptId, made)).toMatchObject({ state: 'SUCCEEDED', reportUid: receiptId })
    expect(await runs.applyAnswer(store, receiptId, { state: 'FAILED', reason: 'x' })).toBeUndefined()
    const other = { ...key, businessDate: dayAfter(businessDate, -1) }
    await runs.insert(store, [{ ...other, receiptId: randomUUID(), dueAt: Date.now() }])
    await remove(scheduleId)
    expect(await runs.giveUp(store, 0)).toMatchObject([{ ...other, state: 'FAILED', reason: 'schedule_removed' }])
    expect(await runs.forget(store, '2100-01-01')).toBeGreaterThan(1)
  })
})
