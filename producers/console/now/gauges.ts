// The four figures of Now, each with its moment, the line of its last 60 minutes, and the alarm's threshold. What is not known
// is said to be unknown, with the moment since when.
import { count, duration } from '../figures.ts'
import { type Html, html } from '../html.ts'
import { timeOf } from '../live/frame.ts'
import type { LivePart } from '../live/texts.ts'
import { HEARD_MS } from '../pulse.ts'
import { ALARMS } from './alarms.ts'
import { type Facts, MINUTES, type Whole } from './facts.ts'
import { byMinute, drawLine, LINE } from './line.ts'
import type { Tone } from './needs.ts'

export interface Gauge {
  /** Begins the ids of its elements. */
  id: string
  name: string
  /** What it counts, in a sentence. */
  about: string
  /** Undefined: not known. */
  value: number | undefined
  /** When `value` was measured, or when it was last known; ms since the epoch. Undefined: never. */
  at: number | undefined
  values: { minute: number; value: number | null }[]
  threshold: number | undefined
  shown: (value: number) => string
}

const seconds = (ms: number) => (ms === 0 ? '0 s' : duration(ms / 1000))
const some = (n: number | null) => n ?? 0

export function gauges(part: LivePart, { now, whole, pulse }: Facts & { whole: Whole }): Html {
  return html`<div class="gauges">${gaugesOf({ now, whole, pulse }).map(gauge => card(part, gauge))}</div>`
}

export function gaugesOf({ now, whole, pulse }: Pick<Facts, 'now' | 'pulse'> & { whole: Whole }): Gauge[] {
  const { kinds, queues, minutes, recent, rows } = whole
  const known = new Map(kinds.map(one => [one.kind, one]))
  const over = <T extends { minute: number }>(minutes: readonly T[], value: (row: T) => number | null) =>
    byMinute(minutes, { now, minutes: MINUTES, value })
  const queuesAgo = queues.length === 0 ? null : Math.max(...queues.map(({ agoMs }) => agoMs))
  const last = minutes.at(-1)
  const done = recent.filter(({ kind }) => known.get(kind)?.hasRows).reduce((sum, { n }) => sum + n, 0)
  const watched = new Set(minutes.map(({ minute }) => minute))
  const waits = queues.filter(({ kind }) => known.get(kind)?.urgent).map(({ oldestMs }) => some(oldestMs))
  return [
    {
      id: 'rows',
      name: 'Rows/s',
      about: 'Rows of batches, and single jobs on cards, in the last 60 s',
      threshold: undefined,
      ...measured(now, pulse.heardMs, HEARD_MS, done / 60),
      // A minute without work has no row; one in which nobody looked isn't known.
      values: over(rows, row => row.rows / 60).map(({ minute, value }) => ({
        minute,
        value: value ?? (watched.has(minute) ? 0 : null),
      })),
      shown: n => (n > 0 && n < 10 ? n.toFixed(1) : count(n)),
    },
    {
      id: 'wait',
      name: 'Oldest interactive job',
      about: 'How long the oldest interactive job has waited',
      ...measured(now, queuesAgo, HEARD_MS, Math.max(0, ...waits)),
      values: over(minutes, row => row.interactiveMs),
      threshold: ALARMS.interactiveMs,
      shown: seconds,
    },
    {
      id: 'outbox',
      name: 'Oldest unpublished result',
      about: 'How old the oldest result is that is not published',
      ...measured(now, last?.agoMs ?? null, HEARD_MS, last?.outboxLastMs ?? 0),
      values: over(minutes, row => row.outboxMs),
      threshold: ALARMS.outboxMs,
      shown: seconds,
    },
    {
      id: 'failed',
      name: 'Failed set',
      about: 'Jobs that failed for good and wait for somebody',
      ...measured(
        now,
        queuesAgo,
        HEARD_MS,
        queues.reduce((sum, { failed }) => sum + failed, 0),
      ),
      values: over(minutes, row => row.failed),
      threshold: ALARMS.failed,
      shown: count,
    },
  ]
}

function measured(now: number, agoMs: number | null, knownMs: number, value: number): Pick<Gauge, 'value' | 'at'> {
  if (agoMs === null) return { value: undefined, at: undefined }
  return { value: agoMs <= knownMs ? value : undefined, at: now - agoMs }
}

function card(part: LivePart, gauge: Gauge): Html {
  const { id, name, about, at, value, values, threshold, shown } = gauge
  const drawn = drawLine(
    values.map(({ value }) => value),
    threshold,
  )
  const range = drawn.most === null ? 'nothing is known' : `between ${shown(drawn.least ?? 0)} and ${shown(drawn.most)}`
  const limit = threshold === undefined ? '' : `; the alarm is above ${shown(threshold)}`
  const alarm =
    drawn.thresholdY === null
      ? undefined
      : html`<line class="alarm" id="${`${id}-alarm`}" x1="0" x2="${LINE.width}" y1="${part.attribute(`${id}-alarm`, 'y1', drawn.thresholdY)}" y2="${part.attribute(`${id}-alarm`, 'y2', drawn.thresholdY)}"></line>`
  return html`<section class="gauge" aria-labelledby="${`${id}-name`}" id="${id}">
<h2 id="${`${id}-name`}">${name}</h2>
<p class="big" id="${`${id}-value`}" data-tone="${part.attribute(`${id}-value`, 'data-tone', toneOf(gauge))}">${part.figure(`${id}-now`, value === undefined ? unknownSince(at) : shown(value))}</p>
<p class="moment">${part.text(`${id}-at`, value === undefined ? '' : `at ${timeOf(at ?? 0)}`)}${limit === '' ? undefined : html`<span class="limit">alarm above ${shown(threshold ?? 0)}</span>`}</p>
<svg class="line" viewBox="0 0 240 48" preserveAspectRatio="none" role="img" aria-labelledby="${`${id}-title`}"><title id="${`${id}-title`}">${`${about}. Over 60 minutes: `}${part.text(`${id}-range`, range)}${limit}.</title>${alarm}<path id="${`${id}-line`}" d="${part.attribute(`${id}-line`, 'd', drawn.d)}"></path></svg>
<details><summary>As a table</summary>${minuteTable(gauge)}</details>
</section>`
}

export function toneOf({ value, threshold }: Pick<Gauge, 'value' | 'threshold'>): Tone {
  if (value === undefined) return 'unknown'
  return threshold !== undefined && value > threshold ? 'bad' : 'well'
}

export function unknownSince(at: number | undefined): string {
  return at === undefined ? 'unknown' : `unknown since ${timeOf(at)}`
}

/** The newest minute first. It is as it was when the page was made. */
function minuteTable({ values, shown, name }: Gauge): Html {
  const line = ({ minute, value }: Gauge['values'][number]) =>
    html`<tr><th scope="row">${timeOf(minute).slice(0, 5)}</th><td class="figure">${value === null ? 'not known' : shown(value)}</td></tr>`
  return html`<div class="minutes"><table><thead><tr><th scope="col">Minute (UTC)</th><th scope="col" class="figure">${name}</th></tr></thead><tbody>${values.toReversed().map(line)}</tbody></table></div>`
}
