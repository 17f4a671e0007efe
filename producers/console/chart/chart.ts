// Draws how a batch went: an SVG, the same in words above it, and as a table beneath it. Lines and areas are stretched to the
// width of the page; texts are not, so that they can be read on a phone. The words tell all that a colour tells. On a live page it
// goes on: what it consists of is its shape, the rest are texts and attributes.
import { count, duration, moment, rows, spanText } from '../figures.ts'
import { type Html, html } from '../html.ts'
import type { LivePart } from '../live/texts.ts'
import type { Course, Point, Stretch } from './course.ts'

const [WIDTH, HEIGHT] = [1_000, 240]
/** Room above the highest line, for its text. */
const HEADROOM = 1.15
/** A stretch of this share of the width has room for its word. */
const WORD_SHARE = 0.16

const WORDS: Record<Stretch['state'], { mark: string; word: string }> = {
  PAUSED: { mark: 'paused', word: 'Paused' },
  STALLED: { mark: 'stalled', word: 'Stalled' },
}

interface Scale {
  x(at: number): number
  y(rows: number): number
}

function scaleOf({ from, to, total, points }: Course): Scale {
  const top = Math.max(total ?? 0, ...points.map(({ done }) => done), 1) * HEADROOM
  return { x: at => ((at - from) / (to - from)) * WIDTH, y: done => HEIGHT - (done / top) * HEIGHT }
}

export function chart(part: LivePart, course: Course): Html {
  const { points, stretches, from, to, total, forecast } = course
  const scale = scaleOf(course)
  const told = sentences(course).join(' ')
  const last = points.at(-1)
  const half = (total ?? last?.done ?? 0) / 2
  const hasRefused = points.some(({ refused }) => refused > 0)
  part.fixed(`chart ${total === null} ${hasRefused} ${forecast === undefined} ${stretches.map(({ state }) => state)}`)
  return html`<figure class="chart">
<figcaption>${part.figure('chart-told', told)}</figcaption>
<svg class="plot" role="img" aria-labelledby="chart-title chart-desc">
<title id="chart-title">Rows of the batch over time</title>
<desc id="chart-desc" data-figure="long">${part.content('chart-desc', told)}</desc>
${stretches.map((one, at) => shade(part, one, { at, scale }))}
<svg viewBox="0 0 1000 240" preserveAspectRatio="none" width="100%" height="100%">
${total === null ? undefined : rule(part, 'total', scale.y(total))}
${rule(part, 'half', scale.y(half))}
${drawn(
  part,
  'done',
  area(points, ({ done }) => done, scale),
)}
${
  hasRefused
    ? drawn(
        part,
        'refused',
        area(fromRefusal(points), ({ refused }) => refused, scale),
      )
    : undefined
}
${drawn(part, 'edge', line(points, scale))}
${forecast && last ? drawn(part, 'forecast', line([last, forecast], scale)) : undefined}
</svg>
${total === null ? undefined : label(part, 'total', { text: `all ${rows(total)}`, y: scale.y(total) })}
${label(part, 'half', { text: count(half), y: scale.y(half) })}
${stretches.map((one, at) => word(part, one, { at, scale }))}
</svg>
<div class="axis">${[from, from + (to - from) / 2, to].map((ms, at) => axisTime(part, ms, { at, lengthMs: to - from }))}</div>
<ul class="legend">
<li><span class="swatch done"></span>rows done</li>
${hasRefused ? html`<li><span class="swatch refused"></span>of these, refused</li>` : undefined}
${forecast ? html`<li><span class="swatch forecast"></span>at the present rate</li>` : undefined}
${stretches.map((one, at) => html`<li><span class="swatch ${WORDS[one.state].mark}"></span>${part.figure(`chart-stretch-${at}`, stretchText(one, to - from))}</li>`)}
</ul>
${table(course)}
</figure>`
}

const share = (value: number, of: number) => `${((value / of) * 100).toFixed(2)}%`
const fixed = (value: number) => value.toFixed(1)

function line(points: readonly Pick<Point, 'at' | 'done'>[], { x, y }: Scale): string {
  return points.map(({ at, done }) => `${fixed(x(at))},${fixed(y(done))}`).join(' ')
}

function area(points: readonly Point[], height: (point: Point) => number, { x, y }: Scale): string {
  const [first, last] = [points[0], points.at(-1)]
  if (!first || !last) return ''
  const top = points.map(point => `${fixed(x(point.at))},${fixed(y(height(point)))}`)
  return [`${fixed(x(first.at))},${HEIGHT}`, ...top, `${fixed(x(last.at))},${HEIGHT}`].join(' ')
}

/** From the last point without a refused row on: the band is drawn where there is one. */
function fromRefusal(points: readonly Point[]): Point[] {
  return points.slice(Math.max(0, points.findIndex(({ refused }) => refused > 0) - 1))
}

/** A line, or an area if it has its way along the bottom. */
function drawn(part: LivePart, name: 'done' | 'refused' | 'edge' | 'forecast', points: string): Html {
  const own = `chart-${name}`
  const attribute = part.attribute(own, 'points', points)
  return name === 'done' || name === 'refused'
    ? html`<polygon class="${name}" id="${own}" points="${attribute}"></polygon>`
    : html`<polyline class="${name}" id="${own}" points="${attribute}"></polyline>`
}

function rule(part: LivePart, name: 'total' | 'half', y: number): Html {
  const own = `chart-${name}`
  return html`<line class="${name}" id="${own}" x1="0" x2="${WIDTH}" y1="${part.attribute(own, 'y1', fixed(y))}" y2="${part.attribute(own, 'y2', fixed(y))}"></line>`
}

function label(part: LivePart, name: 'total' | 'half', { text, y }: { text: string; y: number }): Html {
  const own = `chart-${name}-label`
  return html`<text class="label" id="${own}" x="4" y="${part.attribute(own, 'y', share(y, HEIGHT))}" dy="-4">${part.content(own, text)}</text>`
}

function axisTime(part: LivePart, ms: number, { at, lengthMs }: { at: number; lengthMs: number }): Html {
  const own = `chart-time-${at}`
  return html`<time id="${own}" datetime="${part.attribute(own, 'datetime', new Date(ms).toISOString())}">${part.content(own, spanText(ms, lengthMs))}</time>`
}

interface Placed {
  /** Which stretch of the chart it is. */
  at: number
  scale: Scale
}

function shade(part: LivePart, { state, from, to }: Stretch, { at, scale: { x } }: Placed): Html {
  const own = `chart-shade-${at}`
  // A short stretch is seen, too.
  const width = Math.max(x(to) - x(from), WIDTH / 500)
  return html`<rect class="shade ${WORDS[state].mark}" id="${own}" x="${part.attribute(own, 'x', share(x(from), WIDTH))}" y="0" width="${part.attribute(own, 'width', share(width, WIDTH))}" height="100%"></rect>`
}

/** The word of a stretch; empty where there is no room for it. */
function word(part: LivePart, { state, from, to }: Stretch, { at, scale: { x } }: Placed): Html {
  const own = `chart-word-${at}`
  const text = x(to) - x(from) < WORD_SHARE * WIDTH ? '' : WORDS[state].word.toLowerCase()
  const middle = part.attribute(own, 'x', share((x(from) + x(to)) / 2, WIDTH))
  return html`<text class="word ${WORDS[state].mark}" id="${own}" x="${middle}" y="100%" dy="-8" text-anchor="middle">${part.content(own, text)}</text>`
}

function stretchText({ state, from, to, isNow }: Stretch, lengthMs: number): string {
  const long = duration((to - from) / 1000)
  const begin = spanText(from, lengthMs)
  return isNow ? `${WORDS[state].word} since ${begin} (${long})` : `${WORDS[state].word} from ${begin} for ${long}`
}

/** What the chart shows, for people who don't see it, and for those who have no time to. */
function sentences({ points, stretches, from, speed, secondsLeft }: Course): string[] {
  const [first, last] = [points[0], points.at(-1)]
  if (!first || !last) return []
  const refused = last.refused === 0 ? 'none' : count(last.refused)
  // The first points are deleted if nothing was done for long.
  const [within, unknown] =
    first.done === 0
      ? [` in ${duration((last.at - from) / 1000)}`, []]
      : ['', [`How the first ${count(first.done)} went is not known.`]]
  const told = [`${rows(last.done)} done${within}, ${refused} of them refused.`, ...unknown]
  if (speed !== undefined) told.push(`${count(speed)} rows/s over the last minute.`)
  if (secondsLeft !== undefined) told.push(`At this rate it is done in about ${duration(secondsLeft)}.`)
  for (const state of ['PAUSED', 'STALLED'] as const) {
    const own = stretches.filter(one => one.state === state)
    if (own.length === 0) continue
    const long = duration(own.reduce((sum, one) => sum + one.to - one.from, 0) / 1000)
    const times = own.length === 1 ? 'once' : `${count(own.length)} times`
    told.push(`${WORDS[state].word} ${times}, for ${long}${own.some(one => one.isNow) ? ', and still now' : ''}.`)
  }
  return told
}

/** It is as it was when the page was made. */
function table({ points, stretches }: Course): Html {
  const stateAt = (at: number) => stretches.find(one => one.from <= at && at < one.to)
  const row = (point: Point) =>
    html`<tr><th scope="row">${moment(point.at)}</th><td class="figure">${count(point.done)}</td><td class="figure">${count(point.refused)}</td><td>${stateAt(point.at)?.state.toLowerCase() ?? ''}</td></tr>`
  return html`<details><summary>The same as a table</summary>
<table class="points"><thead><tr><th scope="col">Time (UTC)</th><th scope="col" class="figure">Rows done</th><th scope="col" class="figure">Refused</th><th scope="col">State</th></tr></thead>
<tbody>${points.map(row)}</tbody></table></details>`
}
