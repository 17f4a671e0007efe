// Draws how a batch went: an SVG, the same in words above it, and as a table beneath it. Lines and areas are stretched to the
// width of the page; texts are not, so that they can be read on a phone. The words tell all that a colour tells.
import { count, duration, rows, span } from '../figures.ts'
import { type Html, html } from '../html.ts'
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

export function chart(course: Course): Html {
  const { points, stretches, from, to, total, forecast } = course
  const scale = scaleOf(course)
  const told = sentences(course)
  const last = points.at(-1)
  const middle = from + (to - from) / 2
  const hasRefused = points.some(({ refused }) => refused > 0)
  return html`<figure class="chart">
<figcaption>${told.map(text => html`<span>${text}</span> `)}</figcaption>
<svg class="plot" role="img" aria-labelledby="chart-title chart-desc">
<title id="chart-title">Rows of the batch over time</title>
<desc id="chart-desc">${told.join(' ')}</desc>
${stretches.map(one => shade(one, scale))}
<svg viewBox="0 0 1000 240" preserveAspectRatio="none" width="100%" height="100%">
${total === null ? undefined : rule(scale.y(total), 'total')}
${rule(scale.y((total ?? last?.done ?? 0) / 2), 'half')}
<polygon class="done" points="${area(points, ({ done }) => done, scale)}"></polygon>
${hasRefused ? html`<polygon class="refused" points="${area(fromRefusal(points), ({ refused }) => refused, scale)}"></polygon>` : undefined}
<polyline class="edge" points="${line(points, scale)}"></polyline>
${forecast && last ? html`<polyline class="forecast" points="${line([last, forecast], scale)}"></polyline>` : undefined}
</svg>
${total === null ? undefined : html`<text class="label" x="4" y="${share(scale.y(total), HEIGHT)}" dy="-4">all ${rows(total)}</text>`}
<text class="label" x="4" y="${share(scale.y((total ?? last?.done ?? 0) / 2), HEIGHT)}" dy="-4">${count((total ?? last?.done ?? 0) / 2)}</text>
${stretches.map(one => word(one, scale))}
</svg>
<div class="axis">${[from, middle, to].map(at => span(at, to - from))}</div>
<ul class="legend">
<li><span class="swatch done"></span>rows done</li>
${hasRefused ? html`<li><span class="swatch refused"></span>of these, refused</li>` : undefined}
${forecast ? html`<li><span class="swatch forecast"></span>at the present rate</li>` : undefined}
${stretches.map(one => html`<li><span class="swatch ${WORDS[one.state].mark}"></span>${stretchText(one, to - from)}</li>`)}
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

function rule(y: number, name: string): Html {
  return html`<line class="${name}" x1="0" x2="${WIDTH}" y1="${fixed(y)}" y2="${fixed(y)}"></line>`
}

function shade({ state, from, to }: Stretch, { x }: Scale): Html {
  // A short stretch is seen, too.
  const width = Math.max(x(to) - x(from), WIDTH / 500)
  return html`<rect class="shade ${WORDS[state].mark}" x="${share(x(from), WIDTH)}" y="0" width="${share(width, WIDTH)}" height="100%"></rect>`
}

function word({ state, from, to }: Stretch, { x }: Scale): Html | undefined {
  if (x(to) - x(from) < WORD_SHARE * WIDTH) return undefined
  const middle = (x(from) + x(to)) / 2
  return html`<text class="word ${WORDS[state].mark}" x="${share(middle, WIDTH)}" y="100%" dy="-8" text-anchor="middle">${WORDS[state].word.toLowerCase()}</text>`
}

function stretchText({ state, from, to, isNow }: Stretch, lengthMs: number): Html {
  const long = duration((to - from) / 1000)
  const begin = span(from, lengthMs)
  return isNow
    ? html`${WORDS[state].word} since ${begin} (${long})`
    : html`${WORDS[state].word} from ${begin} for ${long}`
}

/** What the chart shows, for people who don't see it, and for those who have no time to. */
function sentences({ points, stretches, from, speed, secondsLeft }: Course): string[] {
  const [first, last] = [points[0], points.at(-1)]
  if (!first || !last) return []
  const refused = last.refused === 0 ? 'none' : count(last.refused)
  // Points that begin late are of a batch that an earlier release began.
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

function table({ points, stretches, from, to }: Course): Html {
  const stateAt = (at: number) => stretches.find(one => one.from <= at && at < one.to)
  const row = (point: Point) =>
    html`<tr><th scope="row">${span(point.at, to - from, true)}</th><td class="figure">${count(point.done)}</td><td class="figure">${count(point.refused)}</td><td>${stateAt(point.at)?.state.toLowerCase() ?? ''}</td></tr>`
  return html`<details><summary>The same as a table</summary>
<table class="points"><thead><tr><th scope="col">Time (UTC)</th><th scope="col" class="figure">Rows done</th><th scope="col" class="figure">Refused</th><th scope="col">State</th></tr></thead>
<tbody>${points.map(row)}</tbody></table></details>`
}
