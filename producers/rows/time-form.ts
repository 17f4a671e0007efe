// Reads a moment in the one form and zone that a profile declares, as milliseconds since the epoch. Without a profile it is
// ISO 8601. A zone is never guessed: a day alone is its beginning in UTC, and a time of day needs its offset.
import { DATE_FORMS, type DateForm, dateReader } from './date-form.ts'

export const TIME_FORMS = [...DATE_FORMS, 'unix-ms'] as const

export interface TimeForm {
  form: (typeof TIME_FORMS)[number]
  /** `UTC`, an offset `+02:00`, or a name such as `Europe/Paris`; undefined where the form itself says the moment. */
  zone?: string | undefined
}

/** Undefined for a text that can't be read. */
export type ReadTime = (text: string) => number | undefined

const OFFSET = /^([+-])([01]\d|2[0-3]):([0-5]\d)$/
/** Offsets of years long ago may have seconds. */
const FORMER_OFFSET = /^([+-])(\d{2}):(\d{2})(?::(\d{2}))?$/
const CLOCK = /^([01]\d|2[0-3]):([0-5]\d)(?::([0-5]\d)(\.\d{1,9})?)?$/
const SECONDS = /^\d{1,11}$/
const MILLISECONDS = /^\d{1,14}$/
/** Zones change their offset at a quarter of an hour in UTC. */
const QUARTER_MS = 900_000
/** A file may hold times of very many days. */
const OFFSETS_MAX = 100_000

/** Whether the texts of this form say nothing of their zone. */
export function needsZone(form: TimeForm['form']): form is Exclude<DateForm, 'timestamp' | 'unix'> {
  return form !== 'timestamp' && form !== 'unix' && form !== 'unix-ms'
}

/** ISO 8601: a day, or a time with its offset. */
export const readIso: ReadTime = text => readDay(text) ?? readTimestamp(text)
const readDay = openCalendar('YYYY-MM-DD', false, ms => ms)

export function timeReader({ form, zone = 'UTC' }: TimeForm): ReadTime {
  if (form === 'unix') return text => (SECONDS.test(text) ? Number(text) * 1000 : undefined)
  if (form === 'unix-ms') return text => (MILLISECONDS.test(text) ? Number(text) : undefined)
  return needsZone(form) ? openCalendar(form, true, inZone(zone)) : readTimestamp
}

export function isZone(zone: string): boolean {
  if (OFFSET.test(zone)) return true
  try {
    new Intl.DateTimeFormat('en-US', { timeZone: zone })
    return true
  } catch {
    return false
  }
}

const isTimestamp = dateReader('timestamp')

function readTimestamp(text: string): number | undefined {
  if (isTimestamp(text) === undefined) return undefined
  const ms = Date.parse(text.replace(' ', 'T'))
  return Number.isNaN(ms) ? undefined : ms
}

/** `withClock`: the day may be followed by a time of day, behind a blank or T. */
function openCalendar(
  form: Exclude<DateForm, 'timestamp' | 'unix'>,
  withClock: boolean,
  toUtc: (local: number) => number,
): ReadTime {
  const read = dateReader(form)
  return text => {
    const end = withClock ? text.search(/[ T]/) : -1
    const day = read(end < 0 ? text : text.slice(0, end))
    const ms = end < 0 ? 0 : clockMs(text.slice(end + 1))
    return day === undefined || ms === undefined ? undefined : toUtc(Date.parse(`${day}T00:00:00Z`) + ms)
  }
}

function clockMs(text: string): number | undefined {
  const found = CLOCK.exec(text)
  if (!found) return undefined
  const [, hours, minutes, seconds = 0, fraction = 0] = found
  return Math.floor((Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds) + Number(fraction)) * 1000)
}

/**
 * The function from a local time, as if it were UTC, to UTC. If a local time comes twice a year, the function takes one
 * of the two.
 */
function inZone(zone: string): (local: number) => number {
  if (zone === 'UTC') return local => local
  const fixed = offsetIn(zone)
  if (fixed !== undefined) return local => local - fixed
  const format = new Intl.DateTimeFormat('en-US', { timeZone: zone, timeZoneName: 'longOffset' })
  const offsets = new Map<number, number>()
  const offsetAt = (ms: number) => {
    const quarter = Math.floor(ms / QUARTER_MS)
    const known = offsets.get(quarter)
    if (known !== undefined) return known
    if (offsets.size >= OFFSETS_MAX) offsets.clear()
    const name = format.formatToParts(quarter * QUARTER_MS).find(({ type }) => type === 'timeZoneName')?.value ?? ''
    const offset = offsetIn(name.replace('GMT', '')) ?? 0
    offsets.set(quarter, offset)
    return offset
  }
  return local => local - offsetAt(local - offsetAt(local))
}

function offsetIn(text: string): number | undefined {
  const [, sign, hours, minutes, seconds = 0] = FORMER_OFFSET.exec(text) ?? []
  if (sign === undefined) return undefined
  const ms = (Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds)) * 1000
  return sign === '-' ? -ms : ms
}
