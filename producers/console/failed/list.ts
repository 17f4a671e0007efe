// The page of the jobs that failed for good and that a person may see, newest first.
import { FAILED_ACTS, type FailedActName, TICKED_MOST } from '../../../src/job/system/failed-act.ts'
import type { CopyFilter } from '../../../src/queue/failed/selection.ts'
import * as seenClients from '../../../src/store/access/seen-clients.ts'
import type { LiveSession } from '../../../src/store/console/sessions.ts'
import { sightOf } from '../../../src/store/sight.ts'
import { permittedOf, wordOf } from '../acts/subject.ts'
import type { ConsoleApp } from '../app.ts'
import type { ConsoleDeps } from '../deps.ts'
import { command, count, id, moment } from '../figures.ts'
import { type Html, html, path } from '../html.ts'
import { sessionOf } from '../server/guard.ts'
import { framed, refuse, sendPage, when } from '../server/page.ts'
import {
  allPath,
  type Filter,
  filterForm,
  hiddenFields,
  isFiltered,
  listPath,
  optionsOf,
  readFilter,
  sinceOf,
} from './filter.ts'
import { readFrom, writeFrom } from './place.ts'
import { type ListedCopy, type Looked, look } from './set.ts'
import { faultText, sendable } from './text.ts'
import { openTurns } from './turns.ts'

const LISTED = 50
/** How many clients the filter offers. */
const CLIENTS = 200
/** Pages in a minute, for one person. */
const PAGES = 60
const MINUTE_MS = 60_000
/** A page takes about 150 ms, so the last one that waits gets its turn after three seconds. */
const TURNS = { most: 20, mostOfOne: 3 }
const BUSY = 'Failed jobs are being looked for too often. Wait a minute, then try again.'

export function failedListRoutes(app: ConsoleApp, deps: ConsoleDeps): void {
  const inTurn = openTurns(TURNS)
  const limit = app.createRateLimit({
    max: PAGES,
    timeWindow: MINUTE_MS,
    keyGenerator: request => sessionOf(request).personId,
  })

  app.get<{ Querystring: Record<string, unknown> }>('/failed', async (request, reply) => {
    const session = sessionOf(request)
    const counted = await limit(request)
    if (!counted.isAllowed && counted.isExceeded) return refuse(deps, request, reply, { status: 429, text: BUSY })
    const filter = readFilter(deps.catalogue, request.query)
    const from = readFrom(request.query['before'])
    const now = deps.clock()
    const [looked, clients] = await Promise.all([
      inTurn(session.personId, () => look(deps, session, copyFilterOf(filter, now), { from, limit: LISTED })),
      seenClients.list(sightOf(session.entities), deps.store, { limit: CLIENTS }),
    ])
    if (looked === 'busy') return refuse(deps, request, reply, { status: 429, text: BUSY })
    const content = html`<h1>Failed</h1>
<p>Jobs that failed for good. Their senders were answered 500. A copy of each waits here for seven days.</p>
${filterForm(deps.catalogue, filter, clients)}
${when(looked.listed.length > 0 || looked.next !== undefined, actLinks(filter, session))}
${looked.listed.length === 0 ? emptyList(filter, looked, from !== undefined) : tickable(looked.listed, filter, session)}
<p class="pages">${pages(filter, looked, from !== undefined)}</p>
${when(looked.listed.length > 0, csvForm(filter))}
<p class="same">The same on the command line: ${command('tokenmill', 'failed', 'list', ...optionsOf(filter, now))}</p>`
    return sendPage(reply, 200, framed(deps, { title: 'Failed', session, at: 'failed', content }))
  })
}

function csvForm(filter: Filter): Html {
  return html`<form class="csv" method="post" action="/failed/csv">${hiddenFields(filter)}
<button type="submit">These jobs as CSV</button> <span class="muted">Up to 100,000 rows. The audit says that you took them.</span></form>`
}

export function copyFilterOf(filter: Filter, now: number): CopyFilter & Pick<Filter, 'kind'> {
  const { kind, code, clientId } = filter
  return { kind, code, clientId, since: sinceOf(filter, now) }
}

function pages(filter: Filter, { next, lookedTo }: Looked, isLater: boolean): Html {
  const to = next && listPath(filter, writeFrom(next))
  return html`${when(isLater, html`<a href="${listPath(filter)}">Newest</a> `)}${
    lookedTo === undefined
      ? undefined
      : html`Those that failed before about ${moment(lookedTo)} were not looked at yet, because that takes long. `
  }${to && html`<a href="${to}">${lookedTo === undefined ? 'Older' : 'Look further'}</a>`}`
}

function emptyList(filter: Filter, { lookedTo }: Looked, isLater: boolean): Html {
  if (lookedTo !== undefined) return html`<p class="empty">None so far.</p>`
  if (isLater) return html`<p class="empty">No older failed jobs.</p>`
  if (isFiltered(filter))
    return html`<div class="empty"><p>No failed job that is yours to see is like this. Others may be: <a href="/failed">show all</a>.</p></div>`
  return html`<div class="empty"><p>A job that failed for good leaves a copy here, which can be sent again. There is none that is yours to see: nothing needs you.</p>
<p>What has become of a job says ${command('tokenmill', 'explain', 'JTI')}</p></div>`
}

/** For all that the filter matches; of one kind, because each kind has a queue of its own. */
function actLinks(filter: Filter, session: Pick<LiveSession, 'roles'>): Html | undefined {
  const names = permittedOf(FAILED_ACTS, session)
  if (names.length === 0) return undefined
  if (filter.kind === undefined)
    return html`<p class="muted">Choose a kind to ${names.map(name => FAILED_ACTS[name].verb.toLowerCase()).join(' or ')} many at once.</p>`
  const link = (name: FailedActName) =>
    html`<li><a class="button" href="${allPath(wordOf(name), filter)}">${FAILED_ACTS[name].verb} all of these…</a></li>`
  return html`<ul class="acts">${names.map(link)}</ul>`
}

/** The table, with a box before each job where the person may act on those of one kind. */
function tickable(copies: readonly ListedCopy[], filter: Filter, session: Pick<LiveSession, 'roles'>): Html {
  const names = permittedOf(FAILED_ACTS, session)
  if (filter.kind === undefined || names.length === 0) return table(copies, false)
  const button = (name: FailedActName) =>
    html`<button type="submit" formaction="${path`/failed/ticked/${wordOf(name)}`}">${FAILED_ACTS[name].verb} the ticked…</button> `
  return html`<form class="ticked" method="get" action="${path`/failed/ticked/${wordOf(names[0] ?? 'failed.retry')}`}"><input type="hidden" name="kind" value="${filter.kind}">
${table(copies, true)}
<p class="ticked">${names.map(button)}<span class="muted">Up to ${TICKED_MOST} at once.</span></p></form>`
}

function table(copies: readonly ListedCopy[], hasTicks: boolean): Html {
  return html`<table class="two-lines failed${hasTicks ? ' ticks' : ''}">
<thead><tr>${when(hasTicks, html`<th scope="col" class="tick">Tick</th>`)}<th scope="col">Job</th><th scope="col">Why it failed</th><th scope="col">Client</th><th scope="col" class="figure">Attempts</th><th scope="col">Can be sent again</th><th scope="col">Failed (UTC)</th></tr></thead>
<tbody>${copies.map(copy => tableRow(copy, hasTicks))}</tbody>
</table>`
}

function tableRow(copy: ListedCopy, hasTicks: boolean): Html {
  const label = `The ${copy.kind} that failed at ${new Date(copy.failedAt).toISOString().slice(11, 19)}`
  return html`<tr>
${when(
  hasTicks,
  html`<td class="tick"><input type="checkbox" name="id" value="${copy.id}" aria-label="${label}"></td>
`,
)}<td class="main"><a href="${copyPath(copy)}">${copy.kind}</a></td>
<td class="why"><code>${copy.code}</code> <span class="muted">${faultText(copy.code)}</span></td>
<td class="client">${clientOf(copy)}</td>
<td class="figure attempts">${count(copy.attempt)}</td>
<td class="again">${sendable(copy.whyNot)}</td>
<td class="at">${moment(copy.failedAt)}</td>
</tr>`
}

export function copyPath({ kind, id }: Pick<ListedCopy, 'kind' | 'id'>) {
  return path`/failed/${kind}/${id}`
}

export function clientOf({ clientId, clientName }: Pick<ListedCopy, 'clientId' | 'clientName'>): Html {
  if (clientId === undefined) return html`<span class="muted">not said</span>`
  return clientName === undefined ? id(clientId) : html`${clientName}`
}
