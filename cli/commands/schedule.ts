// `tokenmill schedule`: which reports are made every night, and how the last nights ended. The process `tokenmill
// scheduler` sends the jobs; these commands change the schedules.
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { readClientFile } from '../../producers/client/client-file.ts'
import { type Parameters, parametersOf } from '../../producers/schedule/parameters.ts'
import { addSchedule, type OwnerRefusal, removeSchedule } from '../../src/acts/schedule.ts'
import { systemClock } from '../../src/clock.ts'
import { fieldsOf, isRefusal, textOf } from '../../src/errors.ts'
import { panNameRefusal } from '../../src/job/envelope/names.ts'
import type { MimeType, ReportType } from '../../src/job/report.ts'
import { dateOf, nextDue } from '../../src/job/schedule/business-dates.ts'
import { isZone } from '../../src/job/schedule/zone-time.ts'
import { definitionOf } from '../../src/report/definitions.ts'
import type { Client } from '../../src/store/access/clients.ts'
import type { Db } from '../../src/store/pool.ts'
import * as runs from '../../src/store/report/schedule-runs.ts'
import * as schedules from '../../src/store/report/schedules.ts'
import type { JsonOption } from '../command.ts'
import { EXIT, Stop } from '../exit.ts'
import { openCommandStore, withSession } from '../open/open.ts'
import { byOf, type OperatorOptions } from '../open/operator.ts'
import { facts, moment, print, type Terminal, table } from '../terminal.ts'
import { findLiveClient } from './client/find-client.ts'
import { shownRun } from './schedule-runs.ts'

interface AddOptions extends JsonOption, OperatorOptions {
  type: ReportType
  entity?: string
  allEntities?: boolean
  time: string
  zone: string
  mime: MimeType
  parameter?: { name: string; value: string }[]
  client?: string
}

const RUNS_SHOWN = 7

const REFUSED: Record<OwnerRefusal, string> = {
  client_revoked: 'The client is revoked; name another one with --client.',
  role_missing: 'The client lacks the role REPORT_REQUEST; name a client that has it with --client.',
  entity_forbidden: '--entity: the client does not act for this entity; name one of its entities.',
}

export function add(terminal: Terminal, options: AddOptions): Promise<void> {
  return withSession(terminal, async session => {
    const { store } = await openCommandStore(session)
    const owner = await ownerOf(store, options.client ?? join(session.config.dataDir, 'dev-client.json'))
    const { type, time, zone, mime } = options
    const parameters = checkedParameters(type, options.parameter ?? [], owner)
    const schedule: schedules.NewSchedule = {
      scheduleId: randomUUID(),
      clientId: owner.clientId,
      reportType: type,
      entityId: options.allEntities ? null : (options.entity ?? owner.entities[0] ?? null),
      mimeType: mime,
      parameters,
      time,
      zone,
    }
    const by = await byOf({ action: 'schedule.add', subject: schedule.scheduleId }, options, store)
    const verdict = await addSchedule(store, schedule, by)
    if ('refused' in verdict) throw new Stop(REFUSED[verdict.refused], EXIT.usage)
    const { dueAt, businessDate } = nextDue(schedule, systemClock())
    const shown = { schedule_id: schedule.scheduleId, next_due: moment(dueAt), next_date: businessDate }
    print(
      terminal,
      options,
      shown,
      facts({ schedule_id: schedule.scheduleId, next: `${moment(dueAt)} (${businessDate})` }),
    )
  })
}

async function ownerOf(db: Db, word: string): Promise<Client> {
  const file = word.endsWith('.json') ? await readClientFile(word) : undefined
  return findLiveClient(db, file?.client_id ?? word)
}

/**
 * The parameters of a schedule, without the date. A parameter that the report type doesn't accept is refused now
 * instead of at night.
 */
function checkedParameters(
  type: ReportType,
  given: { name: string; value: string }[],
  { names }: Pick<Client, 'names'>,
): Parameters {
  const parameters = Object.fromEntries(given.map(({ name, value }) => [name, value]))
  const asked = parametersOf(type, dateOf(systemClock()), parameters)
  const definition = definitionOf(type)
  if (!asked || !definition) throw new Stop(`${type} is not a report of a day, so it can't be scheduled.`, EXIT.usage)
  const plan = definition.plan(asked)
  const refusal = isRefusal(plan) ? plan : panNameRefusal({ request: { parameters } }, names)
  if (!refusal) return parameters
  const wrong = fieldsOf(refusal).map(one => `${one.field}: ${textOf(one)}`)
  throw new Stop(wrong.join('; '), EXIT.usage)
}

export function list(terminal: Terminal, options: JsonOption): Promise<void> {
  return withSession(terminal, async session => {
    const { store } = await openCommandStore(session)
    const found = await schedules.list(store)
    const shown = await Promise.all(
      found.map(async schedule => ({ schedule, latest: await runs.listOf(store, schedule.scheduleId, RUNS_SHOWN) })),
    )
    const now = systemClock()
    const rows = shown.map(({ schedule, latest: [last] }) => [
      schedule.scheduleId,
      schedule.kind === 'report' ? schedule.reportType : 'token expiry',
      schedule.kind === 'report' ? (schedule.entityId ?? 'all') : '-',
      `${schedule.time} ${schedule.zone}`,
      nextOf(schedule, now),
      last
        ? [last.businessDate, last.state, last.reason, last.lateAt !== null && 'late'].filter(Boolean).join(' ')
        : '-',
    ])
    const value = shown.map(({ schedule, latest }) => ({
      ...shownSchedule(schedule),
      ...(schedule.pausedAt === null
        ? { next_due: isZone(schedule.zone) ? moment(nextDue(schedule, now).dueAt) : null }
        : { paused_at: moment(schedule.pausedAt) }),
      runs: latest.map(shownRun),
    }))
    print(terminal, options, value, table(['SCHEDULE', 'WHAT', 'ENTITY', 'TIME', 'NEXT', 'LAST'], rows))
  })
}

function nextOf(schedule: schedules.Schedule, now: number): string {
  if (schedule.pausedAt !== null) return 'paused'
  return isZone(schedule.zone) ? moment(nextDue(schedule, now).dueAt) : 'never: time zone unknown here'
}

function shownSchedule(schedule: schedules.Schedule): Record<string, unknown> {
  const { scheduleId, kind, time, zone, createdAt } = schedule
  const common = { schedule_id: scheduleId, kind, time, zone, created_at: moment(createdAt) }
  if (schedule.kind !== 'report') return common
  const { clientId, reportType, entityId, mimeType, parameters } = schedule
  const what = { report_type: reportType, entity_id: entityId ?? 'all', mime_type: mimeType, parameters }
  return { ...common, client_id: clientId, ...what }
}

export function remove(terminal: Terminal, scheduleId: string, options: JsonOption & OperatorOptions): Promise<void> {
  return withSession(terminal, async session => {
    const { store } = await openCommandStore(session)
    const by = await byOf({ action: 'schedule.remove', subject: scheduleId }, options, store)
    if ('refused' in (await removeSchedule(store, scheduleId, by)))
      throw new Stop('There is no such schedule of reports; `tokenmill schedule list` lists them.')
    print(terminal, options, { schedule_id: scheduleId, removed: true }, `${scheduleId} is removed`)
  })
}
