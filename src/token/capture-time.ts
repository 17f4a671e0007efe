// `captureTime`: parses an RFC 3339 time in UTC and decides whether it is fresh. The caller passes the time to compare
// with.

const FORM = /^(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(\.\d+)?(?:[Zz]|[+-]00:00)$/
const LENGTH_MAX = 64
const MINUTE_MS = 60_000

export const WINDOW = { beforeMs: 15 * MINUTE_MS, afterMs: MINUTE_MS } as const

/** Parses an RFC 3339 (section 5.6) time in UTC; ms since the epoch. Undefined for any other text. */
export function parseUtc(text: string): number | undefined {
  if (text.length > LENGTH_MAX) return undefined
  const form = FORM.exec(text)
  if (!form) return undefined
  const [year, month, day, hour, minute, second] = [1, 2, 3, 4, 5, 6].map(group => Number(form[group])) as Six
  if (month < 1 || month > 12 || day < 1 || day > daysOf(year, month) || hour > 23 || minute > 59) return undefined
  // RFC 3339 5.7: a leap second is the last second of a month.
  const isLeap = second === 60 && hour === 23 && minute === 59 && day === daysOf(year, month)
  if (second > 59 && !isLeap) return undefined
  return Date.UTC(year, month - 1, day, hour, minute, second) + Number(form[7] ?? 0) * 1000
}
type Six = [year: number, month: number, day: number, hour: number, minute: number, second: number]

function daysOf(year: number, month: number): number {
  if (month === 2) return (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0 ? 29 : 28
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31
}

/**
 * Whether the card was captured between 15 minutes before acceptance and 60 seconds after it. Both times are ms since
 * the epoch.
 */
export function isFresh(capturedAt: number, acceptedAt: number): boolean {
  return capturedAt >= acceptedAt - WINDOW.beforeMs && capturedAt <= acceptedAt + WINDOW.afterMs
}
