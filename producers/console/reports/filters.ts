// The filter of runs: parameters of an address, and a form. It holds only what tokenmill has made: ids of its own, states, and dates.
import { RUN_STATES, type RunFilter, type RunKey, type RunState } from '../../../src/store/console/runs.ts'
import type { NamedSchedule } from '../../../src/store/console/schedules.ts'
import { type Html, html, type Path, path } from '../html.ts'
import { whatOf, whenOf } from './text.ts'

export interface AskedRuns extends RunFilter {
  after?: RunKey | undefined
}

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
export const isUuid = (text: unknown): text is string => typeof text === 'string' && UUID.test(text)

/** `2026-11-23`, if there is such a day. */
export function isDay(text: unknown): text is string {
  if (typeof text !== 'string' || !/^\d{4}-\d\d-\d\d$/.test(text)) return false
  const ms = Date.parse(text)
  return Number.isFinite(ms) && new Date(ms).toISOString().startsWith(text)
}

/** Whatever isn't understood is left out: an address may have been typed. */
export function readAsked(query: unknown): AskedRuns {
  const given = typeof query === 'object' && query !== null ? (query as Record<string, unknown>) : {}
  const { schedule, state, after } = given
  const [businessDate, scheduleId, entityId] = typeof after === 'string' ? after.split('.') : []
  const isPlace = isDay(businessDate) && isUuid(scheduleId) && isUuid(entityId)
  return {
    scheduleId: isUuid(schedule) ? schedule : undefined,
    state: RUN_STATES.find(known => known === state),
    after: isPlace ? { businessDate, scheduleId, entityId } : undefined,
  }
}

export const isFiltered = ({ scheduleId, state }: RunFilter) => scheduleId !== undefined || state !== undefined

/** The address of a page of the list of runs. */
export function addressOf({ scheduleId, state, after }: AskedRuns): Path {
  const place = after ? `${after.businessDate}.${after.scheduleId}.${after.entityId}` : 'first'
  return path`/reports?schedule=${scheduleId ?? 'any'}&state=${state ?? 'any'}&after=${place}`
}

const STATES: Record<RunState, string> = {
  DUE: 'DUE: a scheduler sends it',
  QUEUED: 'QUEUED: sent to a worker',
  FAULTED: 'FAULTED: tried again',
  SUCCEEDED: 'SUCCEEDED',
  FAILED: 'FAILED',
}

export function filterForm({ scheduleId, state }: RunFilter, schedules: readonly NamedSchedule[]): Html {
  const isListed = scheduleId === undefined || schedules.some(one => one.scheduleId === scheduleId)
  return html`<form class="filter" method="get" action="/reports">
<div><label for="schedule">Schedule</label><select id="schedule" name="schedule">${option('any', 'any', scheduleId === undefined)}${schedules.map(one => option(one.scheduleId, `${whatOf(one)}, ${whenOf(one)} (${one.scheduleId.slice(0, 8)})`, one.scheduleId === scheduleId))}${isListed ? undefined : option(scheduleId, scheduleId, true)}</select></div>
<div><label for="state">State</label><select id="state" name="state">${option('any', 'any', state === undefined)}${RUN_STATES.map(one => option(one, STATES[one], one === state))}</select></div>
<div class="send"><button type="submit">Show</button>${isFiltered({ scheduleId, state }) ? html` <a href="/reports">Show all</a>` : undefined}</div>
</form>`
}

function option(value: string, text: string, isChosen: boolean): Html {
  return isChosen
    ? html`<option value="${value}" selected>${text}</option>`
    : html`<option value="${value}">${text}</option>`
}

/** The filter as words of the command line that lists the same. */
export function commandOf({ scheduleId, state }: RunFilter): string[] {
  return [
    ...['tokenmill', 'schedule', 'runs'],
    ...(scheduleId === undefined ? [] : [scheduleId]),
    ...(state === undefined ? [] : ['--state', state]),
  ]
}
