// Reads a calendar date in the one form that a profile declares, as YYYY-MM-DD. Which of two numbers is the month is never
// guessed.

export const DATE_FORMS = [
  ...(['YYYY-MM-DD', 'YYYYMMDD', 'DD/MM/YYYY', 'MM/DD/YYYY', 'DD.MM.YYYY'] as const),
  /** RFC 3339, and seconds since the epoch: the day in UTC. */
  ...(['timestamp', 'unix'] as const),
] as const
export type DateForm = (typeof DATE_FORMS)[number]

type Calendar = Exclude<DateForm, 'timestamp' | 'unix'>
const CALENDAR: Record<Calendar, RegExp> = {
  'YYYY-MM-DD': /^(?<year>\d{4})-(?<month>\d{2})-(?<day>\d{2})$/,
  YYYYMMDD: /^(?<year>\d{4})(?<month>\d{2})(?<day>\d{2})$/,
  'DD/MM/YYYY': /^(?<day>\d{1,2})\/(?<month>\d{1,2})\/(?<year>\d{4})$/,
  'MM/DD/YYYY': /^(?<month>\d{1,2})\/(?<day>\d{1,2})\/(?<year>\d{4})$/,
  'DD.MM.YYYY': /^(?<day>\d{1,2})\.(?<month>\d{1,2})\.(?<year>\d{4})$/,
}
const TIMESTAMP = /^(\d{4}-\d{2}-\d{2})[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:\d{2})$/
const SECONDS = /^\d{1,11}$/

/** The function that reads texts of this form; it answers undefined for any other text. */
export function dateReader(form: DateForm): (text: string) => string | undefined {
  if (form === 'unix') return text => (SECONDS.test(text) ? dayOf(Number(text) * 1000) : undefined)
  if (form === 'timestamp') return readTimestamp
  const pattern = CALENDAR[form]
  return text => {
    const { year = '', month = '', day = '' } = pattern.exec(text)?.groups ?? {}
    return existing(`${year}-${month.padStart(2, '0')}-${day.padStart(2, '0')}`)
  }
}

function readTimestamp(text: string): string | undefined {
  const written = TIMESTAMP.exec(text)?.[1]
  return written === undefined || existing(written) === undefined ? undefined : dayOf(Date.parse(text))
}

/** `Date` would make March of the 30th of February. */
function existing(date: string): string | undefined {
  const ms = Date.parse(`${date}T00:00:00Z`)
  return dayOf(ms) === date ? date : undefined
}

function dayOf(ms: number): string | undefined {
  if (Number.isNaN(ms)) return undefined
  const iso = new Date(ms).toISOString()
  // Years beyond 9999 have a sign.
  return iso.length === 24 ? iso.slice(0, 10) : undefined
}
