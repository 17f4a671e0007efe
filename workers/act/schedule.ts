// An act of a person on a schedule: whether the person may do it to this schedule, and whether it is still as the person saw it. Then
// it is the act of the command (src/acts/schedule.ts).
import { performIn } from '../../src/acts/act.ts'
import { isClientGranted } from '../../src/acts/grants.ts'
import { SCHEDULE_DEEDS, type ScheduleRefusal } from '../../src/acts/schedule.ts'
import { assert, type Reason, refuse } from '../../src/errors.ts'
import { has } from '../../src/job/system/act-row.ts'
import { SCHEDULE_ACTS, ScheduleRunParameters, seenOfRuns, seenOfSchedule } from '../../src/job/system/schedule-act.ts'
import * as clients from '../../src/store/access/clients.ts'
import type { Person } from '../../src/store/person/persons.ts'
import type { Db } from '../../src/store/pool.ts'
import * as runs from '../../src/store/report/schedule-runs.ts'
import * as schedules from '../../src/store/report/schedules.ts'
import type { DoAct } from './prove.ts'
import type { ActDeps } from './trust.ts'

/** The runs of one date: one for each entity of the schedule's client. */
const RUNS_MAX = 10_000

/** The words of refusals that a person can do something about; the others are of its present state. */
const WORDS: Partial<Record<ScheduleRefusal, Reason>> = {
  no_schedule: 'schedule_not_found',
  running: 'schedule_running',
  role_missing: 'role_missing',
  entity_forbidden: 'entity_forbidden',
}

export const actOnSchedule: DoAct = async (db, { person, request, by, deed, refused }, deps) => {
  const { act, subject, parameters, seen } = request
  assert(has(SCHEDULE_ACTS, act), 'its row says that it is on a schedule')
  const schedule = isUuid(subject) ? await schedules.lock(db, subject) : undefined
  if (!schedule || !(await mayMeetSchedule(db, person, schedule, deps))) return refused('schedule_not_found', 'subject')
  const { scheduleId } = schedule
  const entityId = schedule.kind === 'report' ? schedule.entityId : null
  const businessDate = act === 'schedule.run' ? ScheduleRunParameters.parse(parameters).date : ''
  const found = act === 'schedule.run' ? await runs.list(db, { scheduleId, businessDate, limit: RUNS_MAX }) : undefined
  // A run of an entity that the client had before isn't shown to people of others.
  const known = found?.filter(run => person.entities === null || person.entities.includes(run.entityId))
  const isSeen = seen === (known ? seenOfRuns(known) : seenOfSchedule(schedule))
  if (!isSeen) return refused('changed_meanwhile', 'seen', entityId)
  const ended = await performIn(db, deed, by, () =>
    SCHEDULE_DEEDS[act](db, { schedule, businessDate, now: deps.clock() }),
  )
  return 'refused' in ended ? refuse(WORDS[ended.refused] ?? 'act_state', 'body.act') : ended
}

const isUuid = (text: string) => /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(text)

/** A schedule for all entities of a client is for people of all of these. */
async function mayMeetSchedule(
  db: Db,
  { entities }: Pick<Person, 'entities'>,
  schedule: schedules.Schedule,
  { ring, onUngranted }: Pick<ActDeps, 'ring' | 'onUngranted'>,
): Promise<boolean> {
  if (entities === null) return true
  if (schedule.kind !== 'report') return false
  if (schedule.entityId !== null) return entities.includes(schedule.entityId)
  const client = await clients.find(db, schedule.clientId)
  if (!client || client.system || client.entities.length === 0) return false
  if (!client.entities.every(one => entities.includes(one))) return false
  // A revoked row has no code, and no run is made for it.
  if (client.revokedAt !== null || isClientGranted(ring, client)) return true
  onUngranted('client', client.clientId)
  return false
}
