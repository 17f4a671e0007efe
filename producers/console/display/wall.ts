// What a wall display shows of the page Now: the sentence, what needs somebody in a word, the figures, the queue of each kind, and how
// many processes are heard. It shows no name that a sender or an operator chose, and no reference. Anybody in the room reads it.
import { count, duration } from '../figures.ts'
import { type Html, html } from '../html.ts'
import { timeOf } from '../live/frame.ts'
import { type LivePart, type LiveTexts, openLivePart } from '../live/texts.ts'
import type { Facts, Whole } from '../now/facts.ts'
import { type Gauge, gaugesOf, toneOf, unknownSince } from '../now/gauges.ts'
import { type Need, needsOf, sentenceOf } from '../now/needs.ts'
import { kinds } from '../now/tables.ts'
import { HEARD_MS, isHeard, isWatched, seesBatches, unseenSince } from '../pulse.ts'

/** How many needs are shown; the rest is a number. */
const SHOWN = 3
const GLYPHS = { bad: '⚠', warn: '⚠', unknown: '?' } as const

export function wallOf(facts: Facts): { content: Html; texts: LiveTexts } {
  const part = openLivePart()
  const { now, pulse, whole } = facts
  const needs = needsOf(facts)
  const { text, tone } = sentenceOf(needs)
  const top = html`<h1 class="sentence" id="sentence" data-tone="${part.attribute('sentence', 'data-tone', tone)}">${part.figure('sentence-text', text)}</h1>
${needList(part, needs, whole !== undefined)}`
  const content = whole
    ? html`${top}
<div class="figures">${gaugesOf({ now, whole, pulse }).map(gauge => card(part, gauge))}</div>
${kinds(part, whole, { isHeard: isHeard(pulse), isWatched: isWatched(pulse) })}
${heard(part, whole)}`
    : html`${top}${batches(part, facts)}`
  return { content, texts: part.texts(timeOf(now)) }
}

/** A need by its word alone: what it says, and of people for some entities also its word, may hold a name. */
function needList(part: LivePart, needs: readonly Need[], isWhole: boolean): Html | undefined {
  if (needs.length === 0) return undefined
  const groups = [...Map.groupBy(needs, ({ tone, what }) => `${tone} ${isWhole ? what : 'batches'}`).values()]
  const shown = groups.slice(0, SHOWN)
  const more = groups.length - shown.length
  part.fixed(`${more} more`)
  const line = (group: readonly Need[], at: number) => {
    const [{ tone, what } = { tone: 'unknown' as const, what: '' }] = group
    const since = group.flatMap(one => one.since ?? [])
    part.fixed(`${tone} ${isWhole ? what : group.length}`)
    const word = isWhole ? what : tone === 'unknown' ? 'batches' : counted(group.length, 'batch', 'batches')
    return html`<li data-need="${tone}"><span class="glyph" aria-hidden="true">${GLYPHS[tone]}</span> ${word}${since.length === 0 ? undefined : html` <span class="since">since ${part.text(`need-${at}`, timeOf(Math.min(...since)))}</span>`}</li>`
  }
  return html`<ul class="needs">${shown.map(line)}${more > 0 ? html`<li class="since">and ${count(more)} more</li>` : undefined}</ul>`
}

function card(part: LivePart, gauge: Gauge): Html {
  const { id, name, at, value, threshold, shown } = gauge
  return html`<section class="figure-card" aria-labelledby="${`${id}-name`}"><h2 id="${`${id}-name`}">${name}</h2>
<p class="huge" id="${`${id}-value`}" data-tone="${part.attribute(`${id}-value`, 'data-tone', toneOf(gauge))}">${part.figure(`${id}-now`, value === undefined ? unknownSince(at) : shown(value))}</p>
<p class="limit">${threshold === undefined ? '' : `alarm above ${shown(threshold)}`}</p></section>`
}

/** How many processes are heard, on how many hosts; of the others when the last one was. */
function heard(part: LivePart, { processes }: Pick<Whole, 'processes'>): Html {
  const live = processes.filter(({ silentMs }) => silentMs <= HEARD_MS)
  const silent = processes.length - live.length
  const places = new Set(live.map(({ host }) => host)).size
  const text = `${counted(live.length, 'process', 'processes')} on ${counted(places, 'host', 'hosts')} heard`
  const oldest = Math.max(0, ...processes.map(({ silentMs }) => silentMs))
  const rest = silent === 0 ? '' : `, ${count(silent)} silent for up to ${duration(oldest / 1000)}`
  return html`<p class="heard">${part.figure('heard', `${text}${rest}`)}</p>`
}

const STALLED = { id: 'stalled', name: 'Stalled batches' } as const

const counted = (n: number, one: string, many: string) => `${count(n)} ${n === 1 ? one : many}`

/**
 * What a display for some entities shows: how many of their batches are open, and how many of these are stalled. That none is stalled
 * isn't known while nobody sees whether they go on.
 */
function batches(part: LivePart, { batches: open, areMore, pulse, now }: Facts): Html {
  const stalled = open.filter(({ state }) => state === 'STALLED').length
  const more = areMore ? ' or more' : ''
  const figures = [
    { id: 'open', name: 'Open batches', text: `${count(open.length)}${more}`, tone: 'well' },
    // Stalled batches come first, so there can be more of them only if all that were read are stalled.
    stalled === 0 && !seesBatches(pulse)
      ? { ...STALLED, tone: 'unknown', text: unknownSince(unseenSince(pulse, now)) }
      : {
          ...STALLED,
          tone: stalled > 0 ? 'bad' : 'well',
          text: `${count(stalled)}${stalled === open.length ? more : ''}`,
        },
  ]
  return html`<div class="figures few">${figures.map(
    ({ id, name, text, tone }) =>
      html`<section class="figure-card" aria-labelledby="${`${id}-name`}"><h2 id="${`${id}-name`}">${name}</h2>
<p class="huge" id="${`${id}-value`}" data-tone="${part.attribute(`${id}-value`, 'data-tone', tone)}">${part.figure(`${id}-now`, text)}</p></section>`,
  )}</div>`
}
