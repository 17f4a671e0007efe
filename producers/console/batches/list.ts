// The page of all batches that a person may see, newest first.
import { stateOf } from '../../../src/store/batch/batch-state.ts'
import * as seen from '../../../src/store/console/seen-batches.ts'
import { sightOf } from '../../../src/store/console/sight.ts'
import type { ConsoleApp } from '../app.ts'
import type { ConsoleDeps } from '../deps.ts'
import { command, count, id, moment } from '../figures.ts'
import { type Html, html, path } from '../html.ts'
import { sessionOf } from '../server/guard.ts'
import { framed, sendPage, when } from '../server/page.ts'
import { stateMark } from './state-mark.ts'

/** How many batches one page lists. */
const LISTED = 50

export function listRoutes(app: ConsoleApp, deps: ConsoleDeps): void {
  app.get<{ Querystring: { before?: string } }>('/batches', async (request, reply) => {
    const { store, clock } = deps
    const session = sessionOf(request)
    const sight = sightOf(session.entities)
    const { before } = request.query
    const below = typeof before === 'string' && /^\d{1,15}$/.test(before) ? Number(before) : undefined
    const found = await seen.list(sight, store, { before: below, limit: LISTED + 1 })
    const listed = found.slice(0, LISTED)
    const now = clock()
    const last = found.length > LISTED ? listed.at(-1) : undefined
    const content = html`<h1>Batches</h1>
${listed.length === 0 ? emptyList(below !== undefined) : table(listed, now)}
<p class="pages">${when(below !== undefined, html`<a href="/batches">Newest</a> `)}${last ? html`<a href="${path`/batches?before=${last.batchNo}`}">Older</a>` : undefined}</p>
<p class="same">The same on the command line: ${command('tokenmill', 'batch', 'list')}</p>`
    return sendPage(reply, 200, framed(deps, { title: 'Batches', session, at: 'batches', content }))
  })
}

function emptyList(isLater: boolean): Html {
  if (isLater) return html`<p class="empty">No older batches.</p>`
  return html`<div class="empty"><p>Every file that is migrated or sent as a batch is listed here. None that is yours to see has begun.</p>
<p>A batch begins with ${command('tokenmill', 'migrate', 'FILE')}</p></div>`
}

function table(batches: readonly seen.SeenBatch[], now: number): Html {
  return html`<table class="batches">
<thead><tr><th scope="col">Batch</th><th scope="col">State</th><th scope="col">Client</th><th scope="col" class="figure">Rows done</th><th scope="col" class="figure">of</th><th scope="col">Begun (UTC)</th></tr></thead>
<tbody>${batches.map(batch => tableRow(batch, now))}</tbody>
</table>`
}

function tableRow(batch: seen.SeenBatch, now: number): Html {
  return html`<tr>
<td class="main"><a href="${path`/batches/${batch.batchNo}`}">${id(batch.batchId)}</a></td>
<td class="mark">${stateMark(stateOf(batch, now))}</td>
<td class="client">${batch.clientName ?? id(batch.clientId)}</td>
<td class="figure done">${count(batch.rowsDone)}</td>
${batch.extentRows === null ? html`<td class="figure all unknown">not known</td>` : html`<td class="figure all">${count(batch.extentRows)}</td>`}
<td class="begun">${moment(batch.createdAt)}</td>
</tr>`
}
