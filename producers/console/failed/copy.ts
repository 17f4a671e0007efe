// The page of one failed job: whose it was, why it failed, and whether it can be sent again. Nothing of its envelope is shown.
import { FAILED_ACTS, type FailedActName, isAble } from '../../../src/job/system/failed-act.ts'
import type { LiveSession } from '../../../src/store/console/sessions.ts'
import { mayDo, permittedOf, wordOf } from '../acts/subject.ts'
import type { ConsoleApp } from '../app.ts'
import type { ConsoleDeps } from '../deps.ts'
import { command, count, id, moment } from '../figures.ts'
import { type Html, html, path, type Value } from '../html.ts'
import { sessionOf } from '../server/guard.ts'
import { framed, missingPage, sendPage } from '../server/page.ts'
import { listPath } from './filter.ts'
import { clientOf } from './list.ts'
import { findCopy, type ListedCopy } from './set.ts'
import { chosen, couldBeCard, faultText, reasonText } from './text.ts'

/** The copy of a path, if it is the session's person's to see. */
export async function copyOf(
  deps: ConsoleDeps,
  session: Pick<LiveSession, 'entities'>,
  { kind = '', id = '' }: Readonly<Record<string, string>>,
): Promise<ListedCopy | undefined> {
  return deps.catalogue.find(kind) && /^f_[\w-]{43}$/.test(id) ? findCopy(deps, session, { kind, id }) : undefined
}

export function failedCopyRoutes(app: ConsoleApp, deps: ConsoleDeps): void {
  app.get<{ Params: Record<string, string> }>('/failed/:kind/:id', async (request, reply) => {
    const session = sessionOf(request)
    const copy = await copyOf(deps, session, request.params)
    if (!copy) return sendPage(reply, 404, missingPage(deps, session))
    const content = copyContent(copy, session, deps.clock())
    return sendPage(reply, 200, framed(deps, { title: 'One failed job', session, at: 'failed', content }))
  })
}

function copyContent(copy: ListedCopy, session: LiveSession, now: number): Html {
  return html`<p class="up"><a href="/failed">Failed</a></p>
<h1>A failed job: ${copy.kind}</h1>
<p class="effect"><code>${copy.code}</code> ${faultText(copy.code)}</p>
${actLinks(copy, session)}
<section><h2>Facts</h2>${factList(copy, session, now)}</section>
${explainForm(copy)}
<p class="same">The same on the command line: ${command('tokenmill', 'failed', 'show', copy.id)}</p>`
}

function actLinks(copy: ListedCopy, session: LiveSession): Html | undefined {
  const names = permittedOf(FAILED_ACTS, session).filter(name => isAble(copy, name))
  if (names.length === 0) return undefined
  const link = (name: FailedActName) =>
    html`<li><a class="button" href="${path`/failed/${copy.kind}/${copy.id}/${wordOf(name)}`}">${FAILED_ACTS[name].verb}…</a></li>`
  return html`<ul class="acts">${names.map(link)}</ul>`
}

function factList(copy: ListedCopy, session: Pick<LiveSession, 'roles'>, now: number): Html {
  const { clientId, clientName, jti, reference, whyNot } = copy
  const like = { kind: copy.kind, code: copy.code, clientId, since: undefined }
  const facts: [string, Value][] = [
    ['Can be sent again', whyNot === undefined ? 'yes' : `no: ${reasonText(whyNot)}`],
    ['Failed', html`${moment(copy.failedAt)} UTC`],
    ['Attempts', count(copy.attempt)],
    [
      'Client',
      clientId !== undefined && clientName !== undefined ? html`${clientName} ${id(clientId)}` : clientOf(copy),
    ],
    ['jti', jti === undefined ? undefined : couldBeCard(jti) ? chosen(jti) : id(jti)],
    ['Reference', reference === undefined ? undefined : referenceOf(reference, session)],
    ['Job', id(copy.jobId)],
    ['Copy', id(copy.id)],
    ['Like it', html`<a href="${listPath(like)}">those of this kind, fault and client</a>`],
    ['Read', html`${moment(now)} UTC`],
  ]
  const known = facts.filter(([, value]) => value !== undefined)
  return html`<dl class="facts">${known.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`
}

/** A reference is personal data: it is shown to people who may act. */
function referenceOf(reference: string, session: Pick<LiveSession, 'roles'>): Html {
  if (mayDo('failed.retry', session)) return chosen(reference)
  return html`<span class="muted">shown to ${FAILED_ACTS['failed.retry'].roles.join(' and ')}</span>`
}

/** A search is posted, whatever is looked up. */
function explainForm({ id }: ListedCopy): Html {
  return html`<form class="explain" method="post" action="/search"><input type="hidden" name="what" value="${id}"><button type="submit">Explain this job</button></form>`
}
