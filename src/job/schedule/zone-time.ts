// Finds the moment at which a zone's clock first shows a time. Intl.DateTimeFormat knows the zones (this Node has no
// Temporal); it is only asked what a clock shows at one moment.
import { openCache } from '../../cache.ts'

const HOUR_MS = 3_600_000
/** Offsets are less than a day. A zone is assumed not to change its clock twice within three days. */
const AROUND_MS = 36 * HOUR_MS

export function isZone(zone: string): boolean {
  try {
    clockOf(zone)
    return true
  } catch {
    return false
  }
}

/**
 * The first moment (ms since the epoch) at which the zone's clock shows `date` (`YYYY-MM-DD`) and `time` (`HH:MM`). A
 * time that is skipped when the clock goes forward becomes the first moment after the gap; of a time that occurs twice
 * the first is taken. Throws a RangeError for an unknown zone.
 */
export function firstMoment(date: string, time: string, zone: string): number {
  const wall = Date.parse(`${date}T${time}:00Z`)
  const offset = (at: number) => offsetAt(at, zone)
  const before = offset(wall - AROUND_MS)
  const after = offset(wall + AROUND_MS)
  for (const candidate of [wall - before, wall - after].sort((a, b) => a - b)) {
    if (candidate + offset(candidate) === wall) return candidate
  }
  return changeBetween(wall - AROUND_MS, wall + AROUND_MS, offset)
}

/** The first moment with the new offset; there must be exactly one change between `low` and `high`. */
function changeBetween(low: number, high: number, offset: (at: number) => number): number {
  const old = offset(low)
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2)
    if (offset(middle) === old) low = middle
    else high = middle
  }
  return high
}

const CLOCKS_MAX = 1_000
const clocks = openCache<Intl.DateTimeFormat>({ max: CLOCKS_MAX })

function clockOf(zone: string): Intl.DateTimeFormat {
  const known = clocks.get(zone)
  if (known) return known
  const clock = new Intl.DateTimeFormat('en-US', {
    timeZone: zone,
    calendar: 'gregory',
    numberingSystem: 'latn',
    hourCycle: 'h23',
    ...({ year: 'numeric', month: '2-digit', day: '2-digit' } as const),
    ...({ hour: '2-digit', minute: '2-digit', second: '2-digit' } as const),
  })
  clocks.set(zone, clock)
  return clock
}

/** The offset of the zone's clock from UTC, ms. */
function offsetAt(at: number, zone: string): number {
  const shown: Record<string, number> = {}
  for (const { type, value } of clockOf(zone).formatToParts(at)) shown[type] = Number(value)
  const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = shown
  return Date.UTC(year, month - 1, day, hour, minute, second) - Math.floor(at / 1000) * 1000
}
