// The page of one token: its state, and the jobs that were about it; and the page of batches that have one id.

import { findById } from '../../../src/store/batch/batch-list.ts'
import { stateOf } from '../../../src/store/batch/batch-state.ts'
import { find, SEEN_BATCH, type SeenBatch } from '../../../src/store/console/batches.ts'
import { sightOf } from '../../../src/store/sight.ts'
import { findJobs, type TokenFacts } from '../../operate/explain.ts'
import type { ReadReceipt } from '../../operate/job-reader.ts'
import type { ConsoleApp } from '../app.ts'
import type { ConsoleDeps } from '../deps.ts'
import { command, id, word } from '../figures.ts'
import { type Html, html, path, type Value } from '../html.ts'
import { sessionOf } from '../server/guard.ts'
import { framed, missingPage, sendPage } from '../server/page.ts'
import { stateMark } from '../state-mark.ts'
import { jobTable } from './job-content.ts'
import { readerOf } from './reader.ts'

const UUID = /^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$/

export function tokenRoutes(app: ConsoleApp, deps: ConsoleDeps): void {
  app.get<{ Params: { id: string } }>('/explain/tokens/:id', async (request, reply) => {
    const session = sessionOf(request)
    const { store, catalogue, clock } = deps
    const now = clock()
    const unqueued = { queues: undefined, catalogue, now }
    const reader = readerOf(sightOf(session.entities), { store, ...unqueued })
    const { id: tokenId } = request.params
    const found = UUID.test(tokenId) ? await findJobs({ what: tokenId }, { reader, ...unqueued }) : undefined
    if (found?.as !== 'token' || !found.token) return sendPage(reply, 404, missingPage(deps, session))
    const receipts = found.jobs.flatMap(({ receipt }) => receipt ?? [])
    const content = tokenContent(found.token, receipts, found.notes)
    return sendPage(reply, 200, framed(deps, { title: 'One token', session, at: 'explain', content }))
  })

  app.get<{ Params: { no: string } }>('/explain/batches/:no', async (request, reply) => {
    const session = sessionOf(request)
    const sight = sightOf(session.entities)
    const { no } = request.params
    const batch = /^\d{1,15}$/.test(no) ? await find(sight, deps.store, Number(no)) : undefined
    if (!batch) return sendPage(reply, 404, missingPage(deps, session))
    const content = batchesContent(
      await findById(sight, deps.store, { batchId: batch.batchId }, SEEN_BATCH),
      deps.clock(),
    )
    return sendPage(reply, 200, framed(deps, { title: 'Batches of one id', session, at: 'explain', content }))
  })
}

function tokenContent(token: TokenFacts, receipts: readonly ReadReceipt[], notes: readonly string[]): Html {
  const known: [string, Value][] = [
    ['State', token.suspended_reason === undefined ? token.status : `${token.status}: ${token.suspended_reason}`],
    ['Type', token.type],
    ['Token', id(token.token)],
    ['Id', id(token.token_id)],
    ['Token scope', id(token.token_scope)],
    ['Made', `${token.created_at.slice(0, 19).replace('T', ' ')} UTC`],
    ['Last changed', `${token.updated_at.slice(0, 19).replace('T', ' ')} UTC`],
  ]
  const rows = known.filter(([, value]) => value !== undefined)
  return html`<p class="up"><a href="/explain">Explain</a></p>
<h1>One token</h1>
<dl class="facts">${rows.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>
<section><h2>Jobs about it</h2>
${receipts.length === 0 ? html`<p class="empty">No receipt of a job about it is kept: receipts are dropped after some weeks.</p>` : jobTable(receipts)}
${notes.map(note => html`<p class="muted">${note}</p>`)}</section>
<p class="same">The same on the command line: ${command('tokenmill', 'explain', token.token)}</p>`
}

function batchesContent(batches: readonly SeenBatch[], now: number): Html {
  const row = (batch: SeenBatch) => html`<tr>
<td class="main"><a href="${path`/batches/${batch.batchNo}`}">${id(batch.batchId)}</a></td>
<td class="mark">${stateMark(stateOf(batch, now))}</td><td>${batch.clientName ?? word(batch.clientId)}</td></tr>`
  return html`<p class="up"><a href="/explain">Explain</a></p>
<h1>Batches with this id</h1>
<p>Each client chooses the ids of its batches.</p>
<table class="two-lines jobs"><thead><tr><th scope="col">Batch</th><th scope="col">State</th><th scope="col">Client</th></tr></thead>
<tbody>${batches.map(row)}</tbody></table>
${batches.slice(0, 1).map(({ batchId, clientId }) => html`<p class="same">The same on the command line, for one of them: ${command('tokenmill', 'batch', 'show', batchId, '--client', clientId)}</p>`)}`
}
