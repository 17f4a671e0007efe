// The page Now: one sentence first, then what needs somebody, four figures, open batches, kinds and hosts. It fits a screen of
// 1440 × 900. A person who sees some entities gets the sentence about their batches, and these.
import type { FastifyRequest } from 'fastify'
import { entitiesOf, sightOf } from '../../../src/store/sight.ts'
import { type ConsoleApp, UNCOUNTED } from '../app.ts'
import type { ConsoleDeps } from '../deps.ts'
import { command, withCommands } from '../figures.ts'
import { type Html, html, path } from '../html.ts'
import { liveFrame, timeOf } from '../live/frame.ts'
import { type LivePart, type LiveTexts, openLivePart } from '../live/texts.ts'
import { isHeard, isWatched } from '../pulse.ts'
import { sessionOf } from '../server/guard.ts'
import { framed, sendPage } from '../server/page.ts'
import { type Facts, openFacts } from './facts.ts'
import { gauges } from './gauges.ts'
import { type Need, needsOf, sentenceOf } from './needs.ts'
import { hosts, kinds, openBatches } from './tables.ts'

export function nowRoutes(app: ConsoleApp, deps: ConsoleDeps): void {
  const read = openFacts(deps)
  const sightIn = (request: FastifyRequest) => sightOf(sessionOf(request).entities)
  const page = async (request: FastifyRequest): Promise<Html> => {
    const { content, texts } = contentOf(await read(sightIn(request)))
    const paths = { stream: path`/now/live`, again: path`/now/again` }
    const framing = { title: 'Now', session: sessionOf(request), at: 'now' } as const
    return framed(deps, { ...framing, content: liveFrame(texts, paths, content) })
  }
  app.get('/', async (_request, reply) => reply.redirect('/now', 303))
  app.get('/now', async (request, reply) => sendPage(reply, 200, await page(request)))
  app.get('/now/again', UNCOUNTED, async (request, reply) => sendPage(reply, 200, await page(request)))
  app.get('/now/live', UNCOUNTED, (request, reply) => {
    const sight = sightIn(request)
    const whose = entitiesOf(sight)?.toSorted().join(' ') ?? 'all'
    return deps.live.open(request, reply, {
      key: `now ${whose}`,
      read: async () => contentOf(await read(sight)).texts,
    })
  })
}

/** The content of the page, and the same as texts of its elements. */
export function contentOf(facts: Facts): { content: Html; texts: LiveTexts } {
  const part = openLivePart()
  const { now, pulse, whole } = facts
  const needs = needsOf(facts)
  const { text, tone } = sentenceOf(needs)
  const known = { isHeard: isHeard(pulse), isWatched: isWatched(pulse) }
  const top = html`<h1 class="sentence" id="sentence" aria-live="polite" data-tone="${part.attribute('sentence', 'data-tone', tone)}">${part.figure('sentence-text', text)}</h1>
${needs.length === 0 ? undefined : needList(part, needs)}`
  const content = whole
    ? html`${top}
${gauges(part, { ...facts, whole })}
<div class="columns"><div>${openBatches(part, facts)}${hosts(part, whole, now)}</div><div>${kinds(part, whole, known)}</div></div>
${same('status')}`
    : html`${top}${openBatches(part, facts)}${same('batch', 'list', '--state', 'open')}`
  return { content, texts: part.texts(timeOf(now)) }
}

const same = (...words: readonly string[]) =>
  html`<p class="same">The same on the command line: ${command('tokenmill', ...words)}</p>`

/** How many needs are shown; the rest is one line. */
const SHOWN = 4

function needList(part: LivePart, needs: readonly Need[]): Html {
  const shown = needs.slice(0, SHOWN)
  const more = needs.length - shown.length
  for (const { id, tone, to } of shown) part.fixed(`${id} ${tone} ${to.text}`)
  part.fixed(`${more} more`)
  return html`<ul class="needs">${shown.map(need => needLine(part, need))}${more > 0 ? html`<li class="muted">And ${more} more: ${command('tokenmill', 'status')}</li>` : undefined}</ul>`
}

const GLYPHS = { bad: '⚠', warn: '⚠', unknown: '?' } as const

function needLine(part: LivePart, { id, tone, what, says, since, to, next }: Need): Html {
  const own = `need-${id}`
  part.fixed(next)
  return html`<li data-need="${tone}"><span class="glyph" aria-hidden="true">${GLYPHS[tone]}</span><span><a href="${to}">${what}</a>${since === undefined ? undefined : html` <span class="since">since ${part.text(`${own}-since`, timeOf(since))}</span>`}: ${part.text(`${own}-says`, says)}. <span class="next">Next: ${withCommands(next)}</span></span></li>`
}
