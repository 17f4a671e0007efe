// The page of an act that was sent: what it was, and what became of it. It stays, for the person who acted.

import { stateOf } from '../../../src/store/batch/batch-state.ts'
import * as pendingActs from '../../../src/store/console/pending-acts.ts'
import { type ConsoleApp, UNCOUNTED } from '../app.ts'
import type { BatchActName } from '../batches/acts.ts'
import { BATCH_ACTS } from '../batches/acts.ts'
import { batchOf } from '../batches/batch.ts'
import { type ShownState, stateMark } from '../batches/state-mark.ts'
import type { ConsoleDeps } from '../deps.ts'
import { command, id, moment } from '../figures.ts'
import { type Html, html, path } from '../html.ts'
import { sessionOf } from '../server/guard.ts'
import { framed, missingPage, sendPage } from '../server/page.ts'
import { AFTER_MS } from './send.ts'

/** After the end of an act and the time of waiting for its answer, nobody keeps its verdict any more. In ms. */
const KEPT_WITHIN_MS = AFTER_MS + 5_000

export function verdictRoutes(app: ConsoleApp, deps: ConsoleDeps): void {
  app.get<{ Params: { nonce: string } }>('/acts/:nonce', UNCOUNTED, async (request, reply) => {
    const session = sessionOf(request)
    const act = await pendingActs.findSent(deps.store, request.params.nonce, session.personId)
    if (!act) return sendPage(reply, 404, missingPage(deps, session))
    const now = deps.clock()
    const verdict = verdictAt(act, now)
    const batch = act.batchNo === null ? undefined : await batchOf(deps, session, String(act.batchNo))
    const page = { title: 'One act', session, at: 'batches', isWaiting: verdict === null } as const
    const content = verdictContent({ ...act, verdict }, batch && stateOf(batch, now))
    return sendPage(reply, 200, framed(deps, { ...page, content }))
  })
}

/** The verdict; null while it may still come. The process that waited for it may have ended, or the store not have kept it. */
export function verdictAt(
  { verdict, expiresAt }: Pick<pendingActs.SentAct, 'verdict' | 'expiresAt'>,
  now: number,
): pendingActs.Verdict | null {
  return verdict === null && now >= expiresAt + KEPT_WITHIN_MS ? { done: null } : verdict
}

function verdictContent(
  { request, batchNo, sentAt, verdict, auditNo }: pendingActs.SentAct,
  state: ShownState | undefined,
): Html {
  const { reason, subject } = request
  return html`<h1>${titleOf(request)}</h1>
${verdict === null ? html`<p role="status">Waiting for a worker’s verdict. This page asks again by itself.</p>` : said(verdict)}
<dl class="facts">
<div><dt>Batch</dt><dd>${id(String(subject))}${state === undefined ? undefined : html` ${stateMark(state)} now`}</dd></div>
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
  if (verdict.done === null)
    return html`<p class="verdict unknown" role="alert"><strong>Not known.</strong> No answer of a worker came here. The act may have been done, or it may not. Look at the state of the batch below, and at the audit: if it is done, there is a row of it. If there is none, you can do it again.</p>`
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
