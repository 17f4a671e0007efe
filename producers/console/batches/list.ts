// The page of the batches that a person may see: what needs somebody first, or newest first.

import type { BatchState } from '../../../src/job/choices.ts'
import * as batchList from '../../../src/store/batch/batch-list.ts'
import { stateOf } from '../../../src/store/batch/batch-state.ts'
import * as seenClients from '../../../src/store/console/batch-clients.ts'
import { SEEN_BATCH, type SeenBatch } from '../../../src/store/console/batches.ts'
import * as seenNow from '../../../src/store/console/now.ts'
import { sightOf } from '../../../src/store/sight.ts'
import type { ConsoleApp } from '../app.ts'
import type { ConsoleDeps } from '../deps.ts'
import { command, count, duration, id, moment } from '../figures.ts'
import { type Html, html, path } from '../html.ts'
import { isSeenGoing, shownStateOf } from '../pulse.ts'
import { sessionOf } from '../server/guard.ts'
import { framed, sendPage } from '../server/page.ts'
import { stateMark } from '../state-mark.ts'
import { refusedOf } from './counted.ts'
import {
  type AskedList,
  addressOf,
  commandOf,
  filterForm,
  filterOf,
  hiddenFields,
  isFiltered,
  readAsked,
} from './filters.ts'

/** How many batches one page lists. */
const LISTED = 50
/** How many clients the filter offers. */
const CLIENTS = 200

export function listRoutes(app: ConsoleApp, deps: ConsoleDeps): void {
  app.get('/batches', async (request, reply) => {
    const { store, clock } = deps
    const session = sessionOf(request)
    const sight = sightOf(session.entities)
    const asked = readAsked(request.query)
    const { order, after } = asked
    const now = clock()
    const [found, clients, pulse] = await Promise.all([
      batchList.list(sight, store, { ...filterOf(asked), order, after, now, limit: LISTED + 1 }, SEEN_BATCH),
      seenClients.listOfBatches(sight, store, CLIENTS),
      seenNow.findPulse(sight, store),
    ])
    const listed = found.slice(0, LISTED)
    const content = html`<h1>Batches</h1>
${clients.length === 0 ? undefined : filterForm(asked, clients)}
${listed.length === 0 ? emptyList(asked) : table(listed, pulse, now)}
<p class="pages">${pages(asked, found.length > LISTED ? listed.at(-1) : undefined)}</p>
${listed.length === 0 ? undefined : csvForm(asked)}
<p class="same">The same on the command line: ${command(...commandOf(asked))}</p>`
    return sendPage(reply, 200, framed(deps, { title: 'Batches', session, at: 'batches', content }))
  })
}

function pages(asked: AskedList, last: batchList.ListPlace | undefined): Html[] {
  const first = asked.after && html`<a href="${addressOf({ ...asked, after: undefined })}">First page</a> `
  const next =
    last && html`<a href="${addressOf({ ...asked, after: { rank: last.rank, batchNo: last.batchNo } })}">Next page</a>`
  return [first, next].filter(link => link !== undefined)
}

function csvForm(asked: AskedList): Html {
  return html`<form class="csv" method="post" action="/batches/csv">${hiddenFields(asked)}
<button type="submit">These batches as CSV</button> <span class="muted">Up to 100,000 rows. The audit says that you took them.</span></form>`
}

function emptyList(asked: AskedList): Html {
  if (asked.after) return html`<p class="empty">No further batches.</p>`
  if (isFiltered(asked))
    return html`<div class="empty"><p>No batch that is yours to see is like this. Others may be: <a href="/batches">show all</a>.</p></div>`
  return html`<div class="empty"><p>Every file that is migrated or sent as a batch is listed here. None that is yours to see has begun.</p>
<p>A batch begins with ${command('tokenmill', 'migrate', 'FILE')}</p></div>`
}

function table(batches: readonly SeenBatch[], pulse: seenNow.Pulse, now: number): Html {
  return html`<table class="two-lines batches">
<thead><tr><th scope="col">Batch</th><th scope="col">State</th><th scope="col">Client</th><th scope="col" class="figure">Rows done</th><th scope="col" class="figure">of</th><th scope="col" class="figure refused">Refused</th><th scope="col">Begun (UTC)</th></tr></thead>
<tbody>${batches.map(batch => tableRow(batch, pulse, now))}</tbody>
</table>`
}

function tableRow(batch: SeenBatch, pulse: seenNow.Pulse, now: number): Html {
  const { batchNo, rowsDone } = batch
  const state = stateOf(batch, now)
  const refused = refusedOf(batch)
  return html`<tr>
<td class="main"><a href="${path`/batches/${batchNo}`}">${id(batch.batchId)}</a></td>
<td class="mark">${stateMark(shownStateOf(state, isSeenGoing(batch, pulse, now)))}${sinceOf(batch, state, now)}</td>
<td class="client">${batch.clientName ?? id(batch.clientId)}</td>
<td class="figure done" id="batch-${batchNo}-rows">${count(rowsDone)}</td>
${batch.extentRows === null ? html`<td class="figure all unknown">not known</td>` : html`<td class="figure all">${count(batch.extentRows)}</td>`}
<td class="figure refused" id="batch-${batchNo}-refused">${count(refused)}</td>
<td class="begun">${moment(batch.createdAt)}</td>
</tr>`
}

/** Of a batch that needs somebody, for how long it has. */
function sinceOf({ pausedAt, activeAt }: SeenBatch, state: BatchState, now: number): Html | undefined {
  const since = state === 'STALLED' ? activeAt : state === 'PAUSED' ? pausedAt : null
  if (since === null) return undefined
  return html` <span class="muted">for ${duration(Math.max(0, now - since) / 1000)}</span>`
}
