// Schedules and runs in words.
import type { Timing } from '../../../src/job/schedule/business-dates.ts'
import { NO_ENTITY } from '../../../src/store/console/runs.ts'
import { runNextStep, runReasonText } from '../../schedule/run-reasons.ts'
import { id } from '../figures.ts'
import { type Html, html } from '../html.ts'

interface What {
  kind: 'report' | 'token-expiry'
  reportType: string | null
}

/** `DAILY_TRANSACTION_REPORT` → `Daily transaction report`. */
export function whatOf({ kind, reportType }: What): string {
  if (kind === 'token-expiry' || reportType === null) return 'Suspension of expired tokens'
  const text = reportType.toLowerCase().replaceAll('_', ' ')
  return text.charAt(0).toUpperCase() + text.slice(1)
}

/** `02:00, Europe/Berlin`. */
export function timeOf({ time, zone }: Timing): string {
  return zone === 'UTC' ? `${time} UTC` : `${time}, ${zone}`
}

/** Of a schedule whose zone `isZone` refuses. No command writes one; whoever may write the store can. */
export function unknownZoneOf({ zone }: Pick<Timing, 'zone'>): string {
  return `Nobody here knows the time zone ${zone}, so nothing of it begins.`
}

/** `every day at 02:00, Europe/Berlin`. */
export function whenOf(timing: Timing): string {
  return `every day at ${timeOf(timing)}`
}

const FORMATS: Readonly<Record<string, string>> = { 'text/csv': 'CSV', 'application/pdf': 'PDF', 'text/plain': 'text' }

export function formatOf(mimeType: string): string {
  return FORMATS[mimeType] ?? mimeType
}

/** The entity of a run; the sweep of tokens has none. */
export function entityOf(entityId: string): Html | undefined {
  return entityId === NO_ENTITY ? undefined : id(entityId)
}

/** Why a run ended, or is tried again: the code, and its words. */
export function reasonOf(reason: string): Html {
  const text = runReasonText(reason)
  return text === undefined
    ? html`<code>${reason}</code>`
    : html`<code>${reason}</code> <span class="words">${text}</span>`
}

export { runNextStep as nextStepOf }

/** `3 dates`, `1 date`. */
export function dates(n: number): string {
  return `${n} ${n === 1 ? 'date' : 'dates'}`
}
