// The page of an act that was sent: what it was, and what became of it. It stays, for the person who acted.

import * as pendingActs from '../../../src/store/console/pending-acts.ts'
import type { ConsoleApp } from '../app.ts'
import type { BatchActName } from '../batches/acts.ts'
import { BATCH_ACTS } from '../batches/acts.ts'
import type { ConsoleDeps } from '../deps.ts'
import { command, id, moment } from '../figures.ts'
import { type Html, html, path } from '../html.ts'
import { sessionOf } from '../server/guard.ts'
import { framed, missingPage, sendPage } from '../server/page.ts'

export function verdictRoutes(app: ConsoleApp, deps: ConsoleDeps): void {
  app.get<{ Params: { nonce: string } }>('/acts/:nonce', async (request, reply) => {
    const session = sessionOf(request)
    const act = await pendingActs.findSent(deps.store, request.params.nonce, session.personId)
    if (!act) return sendPage(reply, 404, missingPage(deps, session))
    const page = { title: 'One act', session, at: 'batches', isWaiting: act.verdict === null } as const
    return sendPage(reply, 200, framed(deps, { ...page, content: verdictContent(act) }))
  })
}

function verdictContent({ request, batchNo, sentAt, verdict, auditNo }: pendingActs.SentAct): Html {
  const { reason, subject } = request
  return html`<h1>${titleOf(request)}</h1>
${verdict === null ? html`<p role="status">Waiting for a worker’s verdict. This page asks again by itself.</p>` : said(verdict)}
<dl class="facts">
<div><dt>Batch</dt><dd>${id(String(subject))}</dd></div>
<div><dt>Reason</dt><dd>${typeof reason === 'string' && reason !== '' ? reason : 'none given'}</dd></div>
<div><dt>Sent</dt><dd>${sentAt === null ? undefined : html`${moment(sentAt)} UTC`}</dd></div>
${verdict?.done ? html`<div><dt>Audit row</dt><dd>${auditNo === null ? 'gets its number within seconds' : html`number ${auditNo}`}</dd></div>` : undefined}
</dl>
<p class="same">The record of it: ${command('tokenmill', 'audit', 'list', '--action', String(request['act']), '--subject', String(subject))}</p>
<p>${backTo(batchNo)}</p>`
}

function said(verdict: pendingActs.Verdict): Html {
  if (verdict.done)
    return html`<p class="verdict done" role="status"><strong>Done.</strong> A worker has done it and written it into the audit.</p>`
  return html`<p class="verdict refused" role="alert"><strong>Not done.</strong> ${verdict.text} <code>${verdict.reason}</code></p>`
}

function titleOf({ act }: Record<string, unknown>): string {
  const known = (Object.keys(BATCH_ACTS) as BatchActName[]).find(name => BATCH_ACTS[name].act === act)
  return known ? `${BATCH_ACTS[known].verb} a batch` : 'An act'
}

function backTo(batchNo: number | null): Html {
  return batchNo === null
    ? html`<a href="/batches">All batches</a>`
    : html`<a href="${path`/batches/${batchNo}`}">Back to the batch</a>`
}
