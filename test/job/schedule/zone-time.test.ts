// Local times of zones, compared with the zones' changes of 2026 to 2030, which the test finds in another way.
import { describe, expect, it } from 'vitest'
import { datesWithoutRun, dueAt, dueDates, nextDue, nextDues } from '../../../src/job/schedule/business-dates.ts'
import { firstMoment, isZone } from '../../../src/job/schedule/zone-time.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS
const FROM = Date.UTC(2026, 0, 1)
const TO = Date.UTC(2031, 0, 1)

const ZONES = [
  'UTC',
  'Europe/Berlin',
  'Europe/London',
  'America/New_York',
  'America/St_Johns',
  'America/Santiago',
  'Asia/Kolkata',
  'Pacific/Chatham',
  'Pacific/Kiritimati',
  'Pacific/Pago_Pago',
  'Africa/Casablanca',
  // By half an hour.
  'Australia/Lord_Howe',
  // By two hours.
  'Antarctica/Troll',
  // Midnight doesn't exist on the night of the change.
  'Africa/Cairo',
  'Asia/Beirut',
  'America/Havana',
  // Midnight exists twice on the other one.
  'Atlantic/Azores',
]

/** As the zone's name says it: GMT+10:30. */
function offsetOf(zone: string): (at: number) => number {
  const format = new Intl.DateTimeFormat('en-US', { timeZone: zone, timeZoneName: 'longOffset' })
  return at => {
    const name = format.formatToParts(at).find(({ type }) => type === 'timeZoneName')?.value ?? ''
    const [, sign, hours = '0', minutes = '0'] = /^GMT(?:([+-])(\d\d):(\d\d))?$/.exec(name) ?? []
    return (sign === '-' ? -1 : 1) * (Number(hours) * 60 + Number(minutes)) * MINUTE_MS
  }
}

interface Change {
  at: number
  before: number
  after: number
}

function changesOf(zone: string): Change[] {
  const offset = offsetOf(zone)
  const changes: Change[] = []
  for (let day = FROM - 2 * DAY_MS; day < TO; day += DAY_MS) {
    const before = offset(day)
    const after = offset(day + DAY_MS)
    if (before === after) continue
    let low = day
    let high = day + DAY_MS
    while (high - low > MINUTE_MS) {
      const middle = low + Math.floor((high - low) / 2 / MINUTE_MS) * MINUTE_MS
      if (offset(middle) === before) low = middle
      else high = middle
    }
    changes.push({ at: high, before, after })
  }
  return changes
}

const textOf = (ms: number) => new Date(ms).toISOString()

/** Tries every minute until the zone's clock shows `wall` or later. */
function searched(wall: number, { at, before, after }: Change): number {
  for (let ms = wall - 15 * HOUR_MS; ; ms += MINUTE_MS) if (ms + (ms < at ? before : after) >= wall) return ms
}

describe('a time on the clock of a zone', () => {
  it('that does not exist is the first moment after the gap', () => {
    expect(textOf(firstMoment('2026-03-29', '02:30', 'Europe/Berlin'))).toBe('2026-03-29T01:00:00.000Z')
    expect(textOf(firstMoment('2026-10-04', '02:15', 'Australia/Lord_Howe'))).toBe('2026-10-03T15:30:00.000Z')
    expect(textOf(firstMoment('2026-04-24', '00:15', 'Africa/Cairo'))).toBe('2026-04-23T22:00:00.000Z')
  })

  it('that exists twice is the first of them', () => {
    expect(textOf(firstMoment('2026-10-25', '02:30', 'Europe/Berlin'))).toBe('2026-10-25T00:30:00.000Z')
    expect(textOf(firstMoment('2026-11-01', '01:30', 'America/New_York'))).toBe('2026-11-01T05:30:00.000Z')
    expect(textOf(firstMoment('2026-04-05', '01:45', 'Australia/Lord_Howe'))).toBe('2026-04-04T14:45:00.000Z')
  })

  it.each(ZONES)('is the first minute that shows it, around every change of %s until 2030', zone => {
    for (const change of changesOf(zone)) {
      const local = Math.floor((change.at + change.before) / DAY_MS) * DAY_MS
      for (const day of [local - DAY_MS, local, local + DAY_MS]) {
        for (let minutes = 0; minutes < 24 * 60; minutes += minutes < 270 || minutes > 1_380 ? 15 : 180) {
          const wall = day + minutes * MINUTE_MS
          const [date = '', time = ''] = textOf(wall).split('T')
          expect(textOf(firstMoment(date, time.slice(0, 5), zone)), `${zone} ${textOf(wall)}`).toBe(
            textOf(searched(wall, change)),
          )
        }
      }
    }
  })

  it('needs a zone that there is', () => {
    expect(['Europe/Berlin', 'UTC', 'Australia/Lord_Howe'].every(isZone)).toBe(true)
    expect(['', 'Mars/Olympus', 'Europe/Berlin; drop table', '../../etc'].some(isZone)).toBe(false)
    expect(() => firstMoment('2026-01-01', '00:00', 'Mars/Olympus')).toThrow(RangeError)
  })
})

describe('a business date', () => {
  it.each(ZONES)('of every night of 2026 to 2030 in %s is due once, after it has ended, in order', zone => {
    for (const time of ['00:00', '00:15', '02:30', '23:30']) {
      let previous = Number.NEGATIVE_INFINITY
      for (let day = FROM; day < TO; day += DAY_MS) {
        const due = dueAt(textOf(day).slice(0, 10), { time, zone })
        expect(due).toBeGreaterThanOrEqual(day + DAY_MS)
        expect(due).toBeLessThan(day + 3 * DAY_MS)
        expect(due - previous, `${zone} ${time} ${textOf(day)}`).toBeGreaterThan(20 * HOUR_MS)
        previous = due
      }
    }
  })

  it.each(['Europe/Berlin', 'Australia/Lord_Howe', 'Africa/Cairo', 'America/Havana'])(
    'is neither skipped nor doubled by whoever looks now and then, in %s',
    zone => {
      const timing = { time: '00:30', zone }
      const seen: string[] = []
      for (let now = FROM; now < FROM + 730 * DAY_MS; now += 7 * HOUR_MS)
        seen.push(...dueDates(timing, FROM, seen.at(-1) ?? null, now).map(({ businessDate }) => businessDate))
      const expected = Array.from({ length: seen.length }, (_, index) =>
        textOf(Date.parse(seen[0] ?? '') + index * DAY_MS).slice(0, 10),
      )
      expect(seen.length).toBeGreaterThan(725)
      expect(seen).toEqual(expected)
    },
  )

  it('is made up for when nobody looked, for the last seven, and never from before the schedule was made', () => {
    const now = Date.parse('2026-07-20T12:00:00Z')
    const timing = { time: '02:00', zone: 'Europe/Berlin' }
    const datesSince = (since: string, newest: string | null) =>
      dueDates(timing, Date.parse(since), newest, now).map(({ businessDate }) => businessDate.slice(8))
    expect(datesSince('2026-01-01', null)).toEqual(['13', '14', '15', '16', '17', '18', '19'])
    expect(datesSince('2026-01-01', '2026-07-17')).toEqual(['18', '19'])
    expect(datesSince('2026-07-19T10:00:00Z', null)).toEqual(['19'])
    expect(datesSince('2026-07-20T10:00:00Z', null)).toEqual([])
    expect(nextDue(timing, now)).toEqual({ businessDate: '2026-07-20', dueAt: Date.parse('2026-07-21T00:00:00Z') })
  })

  it('is not due before it has ended, however early its zone gets up', () => {
    expect(textOf(dueAt('2026-07-20', { time: '01:00', zone: 'Pacific/Kiritimati' }))).toBe('2026-07-21T00:00:00.000Z')
    expect(textOf(dueAt('2026-07-20', { time: '01:00', zone: 'Europe/Berlin' }))).toBe('2026-07-21T00:00:00.000Z')
    expect(textOf(dueAt('2026-07-20', { time: '22:00', zone: 'America/New_York' }))).toBe('2026-07-22T02:00:00.000Z')
  })
})

describe('a paused schedule', () => {
  const at = (text: string) => Date.parse(`2026-11-${text}Z`)
  const schedule = {
    kind: 'report',
    time: '02:00',
    zone: 'UTC',
    createdAt: at('01T00:00'),
    newest: '2026-11-17',
  } as const
  const going = { ...schedule, pausedAt: null, resumedAt: null }
  const shown = (found: ReturnType<typeof datesWithoutRun>) =>
    found.map(({ businessDate, dueAt: due }) => `${businessDate} ${new Date(due).toISOString().slice(8, 16)}`)

  it('has no dates, and those that it missed are due from the moment at which it is resumed', () => {
    const now = at('21T12:00')
    expect(shown(datesWithoutRun(going, now))).toEqual([
      '2026-11-18 19T02:00',
      '2026-11-19 20T02:00',
      '2026-11-20 21T02:00',
    ])
    expect(datesWithoutRun({ ...going, pausedAt: at('19T01:00') }, now)).toEqual([])
    const resumed = { ...going, resumedAt: at('20T12:00') }
    expect(shown(datesWithoutRun(resumed, now))).toEqual([
      '2026-11-18 20T12:00',
      '2026-11-19 20T12:00',
      '2026-11-20 21T02:00',
    ])
    // Nobody calls late what could not run.
    expect(datesWithoutRun(resumed, at('20T11:59'))).toEqual([])
    expect(shown(datesWithoutRun({ ...resumed, kind: 'token-expiry' }, now))).toEqual(['2026-11-20 21T02:00'])
  })

  it('tells the next dates in their order', () => {
    const next = nextDues({ time: '02:00', zone: 'Europe/Berlin' }, Date.parse('2026-03-27T12:00Z'), 3)
    expect(shown(next)).toEqual(['2026-03-27 28T01:00', '2026-03-28 29T01:00', '2026-03-29 30T00:00'])
    expect(nextDue(going, at('21T12:00'))).toEqual(nextDues(going, at('21T12:00'), 2)[0])
  })
})
