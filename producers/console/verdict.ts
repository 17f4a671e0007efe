// The page of an act that was sent: what it was, and what became of it. It stays, for the person who acted.
import { ACT_ROWS, rowOf } from '../../src/job/system/act.ts'
import { type ActOn, has } from '../../src/job/system/act-row.ts'
import * as seenRows from '../../src/store/console/audit/rows.ts'
import * as pendingActs from '../../src/store/console/pending-acts.ts'
import type { LiveSession } from '../../src/store/console/sessions.ts'
import { sightOf } from '../../src/store/sight.ts'
import { verdictAt } from './acts/settle.ts'
import { type DescribeSent, type SentDescription, titleOf } from './acts/subject.ts'
import { type ConsoleApp, UNCOUNTED } from './app.ts'
import { addressOf } from './audit/filter.ts'
import { sentBatchAct } from './batches/act-outcome.ts'
import type { ConsoleDeps } from './deps.ts'
import { sentFailedAct } from './failed/act-outcome.ts'
import { command, moment } from './figures.ts'
import { type Html, html, path } from './html.ts'
import { sentIdentityAct } from './openid/act-outcome.ts'
import { sentPeopleAct } from './people/act-outcome.ts'
import { sentScheduleAct } from './reports/act-outcome.ts'
import { sessionOf } from './server/guard.ts'
import { framed, missingPage, sendPage } from './server/page.ts'

/** Undefined: its verdict has a page of its own, or none. */
const DESCRIBE: Record<ActOn, DescribeSent | undefined> = {
  batch: sentBatchAct,
  failed: sentFailedAct,
  schedule: sentScheduleAct,
  people: sentPeopleAct,
  identity: sentIdentityAct,
  passkey: undefined,
  invited: undefined,
  list: undefined,
}

export function verdictRoutes(app: ConsoleApp, deps: ConsoleDeps): void {
  app.get<{ Params: { nonce: string } }>('/acts/:nonce', UNCOUNTED, async (request, reply) => {
    const session = sessionOf(request)
    const act = await pendingActs.findSent(deps.store, request.params.nonce, session.personId)
    if (!act) return sendPage(reply, 404, missingPage(deps, session))
    const verdict = verdictAt(act, deps.clock())
    const sent = { ...act, verdict }
    const name = String(act.request['act'])
    const found = has(ACT_ROWS, name) && (await DESCRIBE[rowOf(name).on]?.({ deps, session, act: sent }))
    const described: Described = has(ACT_ROWS, name) && found ? { title: titleOf(name), ...found } : UNDESCRIBED
    const isWaiting = verdict === null || described.goesOn === true
    const { at } = described
    const auditRow = await auditRowOf(sent, session, deps)
    const content = verdictContent(sent, described, auditRow)
    return sendPage(reply, 200, framed(deps, { title: 'One act', session, at, isWaiting, content }))
  })
}

type Described = SentDescription & { title: string }
const UNDESCRIBED: Described = { title: 'An act', at: 'batches', facts: [], back: html`<a href="/">Back</a>` }

/** The row of the act in the audit, as a link if it is the person's to see; of an act that was refused the rows like it. */
export async function auditRowOf(
  { request, verdict, auditNo }: pendingActs.SentAct,
  { entities, personId }: Pick<LiveSession, 'entities' | 'personId'>,
  { store }: Pick<ConsoleDeps, 'store'>,
): Promise<Html | undefined> {
  if (verdict === null || (verdict.done === false && verdict.reason === 'not_sent')) return undefined
  if (!verdict.done)
    return html`<a href="${addressOf({ actor: `person:${personId}`, action: String(request['act']) })}">your acts like this</a>`
  const auditId = Number(verdict.auditId)
  const number = auditNo === null ? 'gets its number within seconds' : `number ${auditNo}`
  const isSeen = auditId > 0 && (await seenRows.find(sightOf(entities), store, auditId)) !== undefined
  return isSeen ? html`<a href="${path`/audit/${auditId}`}">${number}</a>` : html`${number}`
}

function verdictContent(
  { request, sentAt, verdict }: pendingActs.SentAct,
  described: Described,
  auditRow: Html | undefined,
): Html {
  const { reason, subject } = request
  const { title, facts, back, goesOn = false, done, more } = described
  return html`<h1>${title}</h1>
${verdict === null ? html`<p role="status">Waiting for a worker’s verdict. This page asks again by itself.</p>` : said(verdict, { goesOn, done })}
${more}
<dl class="facts">
${facts.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>\n`)}<div><dt>Reason</dt><dd>${typeof reason === 'string' && reason !== '' ? reason : 'none given'}</dd></div>
<div><dt>Sent</dt><dd>${sentAt === null ? undefined : html`${moment(sentAt)} UTC`}</dd></div>
${auditRow && html`<div><dt>Audit</dt><dd>${auditRow}</dd></div>`}
</dl>
<p class="same">The record of it: ${command('tokenmill', 'audit', 'list', '--action', String(request['act']), '--subject', String(subject))}</p>
<p>${back}</p>`
}

function said(verdict: pendingActs.Verdict, { goesOn, done }: Pick<SentDescription, 'goesOn' | 'done'>): Html {
  if (verdict.done && goesOn)
    return html`<p class="verdict" role="status"><strong>Under way.</strong> A worker has written it into the audit, and workers are doing it. This page asks again by itself.</p>`
  if (verdict.done)
    return html`<p class="verdict done" role="status" tabindex="-1" autofocus><strong>Done.</strong> ${done ?? 'A worker has done it and written it into the audit.'}</p>`
  if (verdict.done === null)
    return html`<p class="verdict unknown" role="alert" tabindex="-1" autofocus><strong>Not known.</strong> No answer of a worker came here. The act may have been done, or it may not. Look at what is below, and at the audit: if it is done, there is a row of it. If there is none, you can do it again.</p>`
  return html`<p class="verdict refused" role="alert" tabindex="-1" autofocus><strong>Not done.</strong> ${verdict.text} <code>${verdict.reason}</code></p>`
}
