// A time in a search means the span that its precision leaves open: a date means the whole day, a time to the second
// the whole second. So `==` finds a time of which callers see fewer digits than are stored. No clock is read.

interface Span {
  /** `from` and `to` are RFC 3339 in UTC with microseconds. `to` is the first moment after the span. */
  from: string
  to: string
}

const FORM = /^(\d{4})-(\d\d)-(\d\d)(?:T(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,6}))?)?(?:Z|([+-])(\d\d):(\d\d)))?$/
const DAY_US = 86_400_000_000n

export function spanOf(text: string): Span | undefined {
  const found = FORM.exec(text)
  if (!found) return undefined
  const [, year, month, day, hours, minutes, seconds, fraction, sign, offsetHours, offsetMinutes] = found
  if (!isDay(`${year}-${month}-${day}`)) return undefined
  const midnight = BigInt(Date.UTC(Number(year), Number(month) - 1, Number(day))) * 1000n
  if (hours === undefined) return span(midnight, DAY_US)
  const [h, m, s] = [Number(hours), Number(minutes), Number(seconds ?? 0)]
  const [oh, om] = [Number(offsetHours ?? 0), Number(offsetMinutes ?? 0)]
  if (h > 23 || m > 59 || s > 59 || oh > 23 || om > 59) return undefined
  const offset = (oh * 60 + om) * (sign === '-' ? -1 : 1)
  const from = midnight + BigInt((h * 60 + m - offset) * 60 + s) * 1_000_000n + BigInt((fraction ?? '').padEnd(6, '0'))
  if (seconds === undefined) return span(from, 60_000_000n)
  return span(from, 10n ** BigInt(6 - (fraction ?? '').length))
}

/**
 * Whether the text is a time whose offset lost its `+`: in a query, an unescaped `+` means a blank.
 */
export function hasLostPlus(text: string): boolean {
  return / \d\d:\d\d$/.test(text) && spanOf(text.replace(/ (?=\d\d:\d\d$)/, '+')) !== undefined
}

/**
 * Whether the text is a day of the calendar with a four-digit year. The year 9999 is refused, so that the year of the
 * next day has four digits, too.
 */
export function isDay(text: string): boolean {
  if (!/^[1-9]\d{3}-\d\d-\d\d$/.test(text) || text.startsWith('9999')) return false
  const ms = Date.parse(`${text}T00:00:00Z`)
  return !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(text)
}

function span(from: bigint, length: bigint): Span {
  return { from: textOf(from), to: textOf(from + length) }
}

function textOf(us: bigint): string {
  // Before 1970 `%` gives a negative remainder.
  const rest = ((us % 1_000_000n) + 1_000_000n) % 1_000_000n
  const seconds = new Date(Number((us - rest) / 1000n)).toISOString().slice(0, 19)
  return `${seconds}.${rest.toString().padStart(6, '0')}Z`
}
