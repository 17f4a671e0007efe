import { describe, expect, it } from 'vitest'
import { readIso, type TimeForm, timeReader } from '../../../../producers/rows/time-form.ts'
import { profile } from './profiled.ts'

const iso = (ms: number | undefined) => (ms === undefined ? undefined : new Date(ms).toISOString())

describe('a time without a profile', () => {
  it.each([
    ['2026-03-31', '2026-03-31T00:00:00.000Z'],
    ['2026-03-31T10:00:00Z', '2026-03-31T10:00:00.000Z'],
    ['2026-03-31T10:00:00.25+02:00', '2026-03-31T08:00:00.250Z'],
    ['2026-03-31 10:00-05:00', '2026-03-31T15:00:00.000Z'],
  ])('is a day or a time with its offset: %s', (text, found) => expect(iso(readIso(text))).toBe(found))

  it.each([
    '',
    '2026-02-30',
    '2026-03-31T10:00:00',
    '31.03.2026',
    '2026-03-31T25:00:00Z',
    '1774951200',
    'March',
    '2026-03-31 10:00+99:00',
  ])('is nothing else: %j', text => expect(readIso(text)).toBeUndefined())
})

describe('a time by a profile', () => {
  it.each<[TimeForm, string, string | undefined]>([
    [{ form: 'DD.MM.YYYY', zone: 'Europe/Berlin' }, '31.03.2026', '2026-03-30T22:00:00.000Z'],
    [{ form: 'DD.MM.YYYY', zone: 'Europe/Berlin' }, '31.01.2026 10:30', '2026-01-31T09:30:00.000Z'],
    [{ form: 'YYYY-MM-DD', zone: 'America/New_York' }, '2026-03-31T10:00:05', '2026-03-31T14:00:05.000Z'],
    [{ form: 'YYYY-MM-DD', zone: 'Asia/Kolkata' }, '2026-03-31', '2026-03-30T18:30:00.000Z'],
    // Its clock changes at 15:30 in UTC, by half an hour.
    [{ form: 'YYYY-MM-DD', zone: 'Australia/Lord_Howe' }, '2026-10-04 01:45', '2026-10-03T15:15:00.000Z'],
    [{ form: 'YYYY-MM-DD', zone: 'Australia/Lord_Howe' }, '2026-10-04 02:45', '2026-10-03T15:45:00.000Z'],
    // 44 minutes and 30 seconds behind.
    [{ form: 'YYYY-MM-DD', zone: 'Africa/Monrovia' }, '1971-06-01', '1971-06-01T00:44:30.000Z'],
    [{ form: 'MM/DD/YYYY', zone: '-03:00' }, '3/31/2026 10:00', '2026-03-31T13:00:00.000Z'],
    [{ form: 'YYYYMMDD', zone: 'UTC' }, '20260331', '2026-03-31T00:00:00.000Z'],
    [{ form: 'unix' }, '1774951200', '2026-03-31T10:00:00.000Z'],
    [{ form: 'unix-ms' }, '1774951200250', '2026-03-31T10:00:00.250Z'],
    [{ form: 'timestamp' }, '2026-03-31T10:00:00+02:00', '2026-03-31T08:00:00.000Z'],
    [{ form: 'YYYY-MM-DD', zone: 'UTC' }, '2026-03-31 24:00', undefined],
    [{ form: 'YYYY-MM-DD', zone: 'UTC' }, '2026-03-31 10:00Z', undefined],
    [{ form: 'DD/MM/YYYY', zone: 'UTC' }, '03/31/2026', undefined],
    [{ form: 'unix' }, '1774951200250', undefined],
  ])('of the form %j reads %s as %s', (form, text, found) => expect(iso(timeReader(form)(text))).toBe(found))

  it('says of the hours that a zone leaves out or has twice the same each time', () => {
    const read = timeReader({ form: 'YYYY-MM-DD', zone: 'Europe/Berlin' })
    for (const text of ['2026-03-29 02:30', '2026-10-25 02:30']) {
      const hour = iso(read(text))?.slice(0, 13)
      expect(['2026-03-29T00', '2026-03-29T01', '2026-10-25T00', '2026-10-25T01']).toContain(hour)
      expect(read(text)).toBe(timeReader({ form: 'YYYY-MM-DD', zone: 'Europe/Berlin' })(text))
    }
  })

  it.each([
    [{ form: 'YYYY-MM-DD' }, 'source_time has no zone'],
    [{ form: 'unix', zone: 'UTC' }, 'source_time has a zone'],
    [{ form: 'DD.MM.YYYY', zone: 'Mitteleuropa' }, 'source_time.zone is no zone'],
    [{ form: 'DD.MM.YYYY', zone: '+99:99' }, 'source_time.zone is no zone'],
  ])('is refused as %j', (source_time, wrong) => expect(() => profile({ source_time })).toThrow(wrong))
})
