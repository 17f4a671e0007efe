// The page of an act that was sent: what it was, and what became of it. It stays, for the person who acted.
import type { ActName } from '../../../src/job/system/act.ts'
import * as pendingActs from '../../../src/store/console/pending-acts.ts'
import { type ConsoleApp, UNCOUNTED } from '../app.ts'
import { sentBatchAct } from '../batches/sent.ts'
import type { ConsoleDeps } from '../deps.ts'
import { sentFailedAct } from '../failed/sent.ts'
import { command, moment } from '../figures.ts'
import { type Html, html } from '../html.ts'
import { sessionOf } from '../server/guard.ts'
import { framed, missingPage, sendPage } from '../server/page.ts'
import { AFTER_MS } from './send.ts'
import type { DescribeSent, SentDescription } from './subject.ts'

/** After the end of an act and the time of waiting for its answer, nobody keeps its verdict any more. In ms. */
const KEPT_WITHIN_MS = AFTER_MS + 5_000

const DESCRIBE: Partial<Record<ActName, DescribeSent>> = {
  'batch.pause': sentBatchAct,
  'batch.resume': sentBatchAct,
  'batch.cancel': sentBatchAct,
  'batch.note': sentBatchAct,
  'failed.retry': sentFailedAct,
  'failed.discard': sentFailedAct,
}

export function verdictRoutes(app: ConsoleApp, deps: ConsoleDeps): void {
  app.get<{ Params: { nonce: string } }>('/acts/:nonce', UNCOUNTED, async (request, reply) => {
    const session = sessionOf(request)
    const act = await pendingActs.findSent(deps.store, request.params.nonce, session.personId)
    if (!act) return sendPage(reply, 404, missingPage(deps, session))
    const verdict = verdictAt(act, deps.clock())
    const sent = { ...act, verdict }
    const name = act.request['act'] as ActName
    const described = (await DESCRIBE[name]?.({ deps, session, act: sent })) ?? UNDESCRIBED
    const isWaiting = verdict === null || described.goesOn === true
    const { at } = described
    const content = verdictContent(sent, described)
    return sendPage(reply, 200, framed(deps, { title: 'One act', session, at, isWaiting, content }))
  })
}

const UNDESCRIBED: SentDescription = { title: 'An act', at: 'batches', facts: [], back: html`<a href="/">Back</a>` }

/** The verdict; null while it may still come. The process that waited for it may have ended, or the store not have kept it. */
export function verdictAt(
  { verdict, expiresAt }: Pick<pendingActs.SentAct, 'verdict' | 'expiresAt'>,
  now: number,
): pendingActs.Verdict | null {
  return verdict === null && now >= expiresAt + KEPT_WITHIN_MS ? { done: null } : verdict
}

function verdictContent({ request, sentAt, verdict, auditNo }: pendingActs.SentAct, described: SentDescription): Html {
  const { reason, subject } = request
  const { title, facts, back, goesOn = false, done } = described
  return html`<h1>${title}</h1>
${verdict === null ? html`<p role="status">Waiting for a worker’s verdict. This page asks again by itself.</p>` : said(verdict, { goesOn, done })}
<dl class="facts">
${facts.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>\n`)}<div><dt>Reason</dt><dd>${typeof reason === 'string' && reason !== '' ? reason : 'none given'}</dd></div>
<div><dt>Sent</dt><dd>${sentAt === null ? undefined : html`${moment(sentAt)} UTC`}</dd></div>
${verdict?.done ? html`<div><dt>Audit row</dt><dd>${auditNo === null ? 'gets its number within seconds' : html`number ${auditNo}`}</dd></div>` : undefined}
</dl>
<p class="same">The record of it: ${command('tokenmill', 'audit', 'list', '--action', String(request['act']), '--subject', String(subject))}</p>
<p>${back}</p>`
}

function said(verdict: pendingActs.Verdict, { goesOn, done }: Pick<SentDescription, 'goesOn' | 'done'>): Html {
  if (verdict.done && goesOn)
    return html`<p class="verdict" role="status"><strong>Under way.</strong> A worker has written it into the audit, and workers are doing it. This page asks again by itself.</p>`
  if (verdict.done)
    return html`<p class="verdict done" role="status"><strong>Done.</strong> ${done ?? 'A worker has done it and written it into the audit.'}</p>`
  if (verdict.done === null)
    return html`<p class="verdict unknown" role="alert"><strong>Not known.</strong> No answer of a worker came here. The act may have been done, or it may not. Look at what is below, and at the audit: if it is done, there is a row of it. If there is none, you can do it again.</p>`
  return html`<p class="verdict refused" role="alert"><strong>Not done.</strong> ${verdict.text} <code>${verdict.reason}</code></p>`
}
