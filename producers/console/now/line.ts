// The line of a figure: 60 minutes, drawn on the server as the path of an SVG, with the alarm's threshold. A minute of which
// nothing is known is a gap.

export const LINE = { width: 240, height: 48 } as const

export interface Drawn {
  /** The attribute `d` of the line. */
  d: string
  /** Where the threshold lies; null if there is none. */
  thresholdY: number | null
  /** The highest and the lowest value; null if nothing is known. */
  most: number | null
  least: number | null
}

const EDGE = 2

/** `values`: oldest first; null: not known. */
export function drawLine(values: readonly (number | null)[], threshold: number | undefined): Drawn {
  const known = values.filter(value => value !== null)
  const top = Math.max(1, ...known, ...(threshold === undefined ? [] : [threshold * 1.25]))
  const y = (value: number) => round(LINE.height - EDGE - (value / top) * (LINE.height - 2 * EDGE))
  const x = (at: number) => round((at / Math.max(1, values.length - 1)) * LINE.width)
  const steps = values.map((value, at) => {
    if (value === null) return ''
    const isFirst = at === 0 || values[at - 1] === null
    // A minute between two gaps is a dot: a line of no length with round ends.
    const isAlone = isFirst && (values[at + 1] ?? null) === null
    return `${isFirst ? 'M' : 'L'}${x(at)} ${y(value)}${isAlone ? 'h0.1' : ''}`
  })
  return {
    d: steps.join(''),
    thresholdY: threshold === undefined ? null : y(threshold),
    most: known.length === 0 ? null : Math.max(...known),
    least: known.length === 0 ? null : Math.min(...known),
  }
}

const round = (n: number) => Math.round(n * 10) / 10

const MINUTE_MS = 60_000

/** The values of the `minutes` full minutes before `now`, by a list of what is known. */
export function byMinute<T extends { minute: number }>(
  known: readonly T[],
  { now, minutes, value }: { now: number; minutes: number; value: (row: T) => number | null },
): { minute: number; value: number | null }[] {
  const rows = new Map(known.map(row => [row.minute, row]))
  const end = Math.floor(now / MINUTE_MS) * MINUTE_MS
  return Array.from({ length: minutes }, (_, at) => {
    const minute = end - (minutes - at) * MINUTE_MS
    const row = rows.get(minute)
    return { minute, value: row === undefined ? null : value(row) }
  })
}
