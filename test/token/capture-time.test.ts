import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isFresh, parseUtc } from '../../src/token/capture-time.ts'
import { NOW } from './samples.ts'

describe('captureTime', () => {
  it.each([
    ['', 'is empty'],
    ['2026-11-21', 'has no time'],
    ['2026-11-21T12:00:00', 'has no offset'],
    ['2026-11-21 12:00:00Z', 'has a blank for a T'],
    ['2026-11-21T12:00:00+01:00', 'is another zone’s'],
    ['2026-11-21T12:00:00-00:30', 'is another zone’s'],
    ['2026-11-21T12:00:00+0000', 'lacks the colon of its offset'],
    ['2026-11-21T12:00Z', 'has no seconds'],
    ['2026-11-21T12:00:00.Z', 'has a fraction without digits'],
    ['2026-11-21T12:00:00,5Z', 'has a comma'],
    ['2026-11-21T24:00:00Z', 'is at 24 hours'],
    ['2026-11-21T12:60:00Z', 'is at 60 minutes'],
    ['2026-11-21T12:00:60Z', 'is a leap second at noon'],
    ['2026-11-21T23:59:60Z', 'is a leap second inside a month'],
    ['2026-11-21T12:00:61Z', 'is at 61 seconds'],
    ['2026-13-01T12:00:00Z', 'is in a 13th month'],
    ['2026-00-01T12:00:00Z', 'is in month 0'],
    ['2026-11-31T12:00:00Z', 'is on November 31'],
    ['2026-02-29T12:00:00Z', 'is on February 29 of an ordinary year'],
    ['2100-02-29T12:00:00Z', 'is on February 29 of a century'],
    ['26-11-21T12:00:00Z', 'has a short year'],
    ['+002026-11-21T12:00:00Z', 'has a long year'],
    [' 2026-11-21T12:00:00Z', 'begins with a blank'],
    ['2026-11-21T12:00:00Z\n', 'ends in a line break'],
    [`2026-11-21T12:00:00.${'0'.repeat(99)}Z`, 'is longer than any clock says'],
    ['1795262400000', 'is a number'],
  ])('%j %s', text => {
    expect(parseUtc(text)).toBeUndefined()
  })

  it.each([
    ['2026-11-21T12:00:00Z', 0],
    ['2026-11-21t12:00:00z', 0],
    ['2026-11-21T12:00:00+00:00', 0],
    ['2026-11-21T12:00:00-00:00', 0],
    ['2026-11-21T12:00:00.5Z', 500],
    ['2026-11-21T12:00:00.123456789+00:00', 123.456789],
    ['2024-02-29T12:00:00Z', Date.UTC(2024, 1, 29, 12) - NOW],
    ['2016-12-31T23:59:60Z', Date.UTC(2017, 0, 1) - NOW],
    ['2016-12-31T23:59:60.25Z', Date.UTC(2017, 0, 1) + 250 - NOW],
  ])('%j is %d ms from noon of the day', (text, ms) => {
    expect(parseUtc(text)).toBeCloseTo(NOW + ms, 5)
  })

  it('is what a clock of whole milliseconds writes', () => {
    const times = fc.date({ min: new Date(0), max: new Date('9999-12-31T23:59:59.999Z'), noInvalidDate: true })
    fc.assert(fc.property(times, time => Math.round(parseUtc(time.toISOString()) ?? 0) === time.getTime()))
  })

  it('is fresh from 15 minutes before acceptance to 60 seconds after it', () => {
    expect([-900_001, -900_000, 0, 60_000, 60_001].map(ms => isFresh(NOW + ms, NOW))).toEqual([
      false,
      true,
      true,
      true,
      false,
    ])
  })
})
