// The page Audit: who did what to what, when, why, and how it ended; newest first.
import { z } from 'zod'
import * as auditList from '../../../src/store/access/audit-list.ts'
import * as choices from '../../../src/store/console/audit/choices.ts'
import * as seenRows from '../../../src/store/console/audit/rows.ts'
import { sightOf } from '../../../src/store/sight.ts'
import type { ConsoleApp } from '../app.ts'
import type { ConsoleDeps } from '../deps.ts'
import { command, id, moment } from '../figures.ts'
import { type Html, html, path } from '../html.ts'
import { shown } from '../sender-text.ts'
import { sessionOf } from '../server/guard.ts'
import { framed, missingPage, refuse, sendPage } from '../server/page.ts'
import {
  type AskedAudit,
  addressOf,
  commandOf,
  filterForm,
  filterOf,
  hiddenFields,
  isFiltered,
  readAsked,
} from './filter.ts'
import { proofOf, proofSection, worstOf } from './proof.ts'
import { outcomeMark, who } from './row-text.ts'

/** How many rows one page lists. */
const LISTED = 50
/** How many of who acted, and how many acts, the filter offers. */
const OFFERED = 200
/** Look-ups in a minute, for one person. */
const LOOKUPS = 60
const MINUTE_MS = 60_000
const Form = z.object({ what: z.string().max(4_000) })
/** The longest subject that tokenmill writes is shorter. */
const NAME_MAX = 1_000

export function auditRoutes(app: ConsoleApp, deps: ConsoleDeps): void {
  const { store, clock } = deps
  const limit = app.createRateLimit({
    max: LOOKUPS,
    timeWindow: MINUTE_MS,
    keyGenerator: request => sessionOf(request).personId,
  })

  app.get('/audit', async (request, reply) => {
    const session = sessionOf(request)
    const sight = sightOf(session.entities)
    const asked = readAsked(request.query)
    const { like, after } = asked
    const [page, actors, actions, about, proof] = await Promise.all([
      auditList.list(sight, store, { ...filterOf(asked), after, limit: LISTED }, seenRows.SEEN_AUDIT),
      choices.listActors(sight, store, OFFERED),
      choices.listActions(sight, store, OFFERED),
      like === undefined ? undefined : seenRows.find(sight, store, like),
      proofOf(sight, store),
    ])
    if (like !== undefined && !about) return sendPage(reply, 404, missingPage(deps, session))
    const subject = about && shown(about.subject)
    const now = clock()
    const content = html`<h1>Audit</h1>
<p>Who did what to what, when and why. ${proof ? html`<a href="#proof">Can it be believed?</a>` : undefined}</p>
${proof && worstOf(proof, { now, isEmbedded: deps.isEmbedded })}
${filterForm(asked, { actors, actions })}
${findForm()}
${subject === undefined ? undefined : html`<p>Only rows about ${id(subject)}.</p>`}
${page.found.length === 0 ? emptyList(asked, page) : table(page.found, session.personId)}
<p class="pages">${pages(asked, page)}</p>
${page.found.length === 0 ? undefined : csvForm(asked)}
${proof && proofSection(proof, { now, isEmbedded: deps.isEmbedded })}
<p class="same">The same on the command line: ${command(...commandOf(asked, subject))}</p>`
    return sendPage(reply, 200, framed(deps, { title: 'Audit', session, at: 'audit', content }))
  })

  app.post('/audit/find', async (request, reply) => {
    const session = sessionOf(request)
    const counted = await limit(request)
    if (!counted.isAllowed && counted.isExceeded)
      return refuse(deps, request, reply, { status: 429, text: 'Too many searches. Wait a minute, then try again.' })
    const what = Form.safeParse(request.body).data?.what.trim() ?? ''
    const isName = what.length > 0 && what.length <= NAME_MAX && !what.includes('\0')
    const sight = sightOf(session.entities)
    const auditId = isName ? await seenRows.findNamed(sight, store, what) : undefined
    const row = auditId === undefined ? undefined : await seenRows.find(sight, store, auditId)
    if (row) {
      const to = row.subject === what ? addressOf({ like: row.auditId }) : path`/audit/${row.auditId}`
      return reply.redirect(to.text, 303)
    }
    const content = html`<p class="up"><a href="/audit">Audit</a></p>
<h1>Nothing found</h1>
<p>No row is about that subject or has that number, or it is not yours to see.</p>
${findForm()}`
    return sendPage(reply, 404, framed(deps, { title: 'Nothing found', session, at: 'audit', content }))
  })
}

/** A subject may be a text that a sender chose, so it is posted. */
function findForm(): Html {
  return html`<form class="audit-find" method="post" action="/audit/find">
<label for="what">About one subject, or by number</label><input id="what" name="what" maxlength="1000" autocomplete="off" spellcheck="false" placeholder="a batch’s id, a client’s name, 1234…" required> <button type="submit">Find</button></form>`
}

function pages(asked: AskedAudit, { next, lookedTo }: auditList.AuditPage<unknown>): Html {
  const first = asked.after && html`<a href="${addressOf({ ...asked, after: undefined })}">Newest</a> `
  const far = lookedTo === undefined ? undefined : html`Looked back to ${moment(lookedTo)} UTC. `
  const more =
    next &&
    html`<a href="${addressOf({ ...asked, after: next })}">${lookedTo === undefined ? 'Older' : 'Look further'}</a>`
  return html`${first}${far}${more}`
}

function csvForm(asked: AskedAudit): Html {
  return html`<form class="csv" method="post" action="/audit/csv">${hiddenFields(asked)}
<button type="submit">These rows as CSV</button> <span class="muted">Up to 100,000 rows. The audit says that you took them.</span></form>`
}

function emptyList(asked: AskedAudit, { lookedTo }: auditList.AuditPage<unknown>): Html {
  if (lookedTo !== undefined) return html`<p class="empty">None so far.</p>`
  if (asked.after) return html`<p class="empty">No older rows.</p>`
  if (isFiltered(asked))
    return html`<div class="empty"><p>No row that is yours to see is like this. Others may be: <a href="/audit">show all</a>.</p></div>`
  return html`<div class="empty"><p>Each act of a person or an operator leaves a row here, also if it was refused. None that is yours to see was done.</p>
<p>Rows are written by acts, for example ${command('tokenmill', 'batch', 'pause', 'BATCH')}</p></div>`
}

/** Rows as they are listed. `personId`: who looks at them. */
export function table(found: readonly seenRows.SeenAuditRow[], personId: string): Html {
  return html`<table class="two-lines audit">
<thead><tr><th scope="col">When (UTC)</th><th scope="col">Act</th><th scope="col">Subject</th><th scope="col">Who</th><th scope="col">Outcome</th><th scope="col" class="why">Reason</th></tr></thead>
<tbody>${found.map(row => tableRow(row, personId))}</tbody>
</table>`
}

function tableRow(row: seenRows.SeenAuditRow, personId: string): Html {
  const { auditId, at, action, subject, outcome } = row
  return html`<tr>
<td class="at">${moment(at)}</td>
<td class="act"><a href="${path`/audit/${auditId}`}">${action}</a></td>
<td class="subject">${id(shown(subject))}</td>
<td class="who">${who(row, personId)}</td>
<td class="mark">${outcomeMark(outcome)}</td>
<td class="why">${shortReason(row)}</td>
</tr>`
}

/** How much of a reason a list shows. */
const REASON_SHOWN = 100

function shortReason({ reason, why, outcome }: seenRows.SeenAuditRow): Html {
  if (reason === null) return outcome === 'done' || why === null ? html`` : html`<span class="muted">${cut(why)}</span>`
  return html`${cut(reason)}`
}

function cut(text: string): string {
  const whole = shown(text)
  return whole.length > REASON_SHOWN ? `${whole.slice(0, REASON_SHOWN - 1)}…` : whole
}
