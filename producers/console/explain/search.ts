// The search: a form that is posted, and answered by the address of what was found. What was typed stands in no address, log
// or answer; what is nobody's and what is somebody else's have one answer.
import { z } from 'zod'
import { Fault } from '../../../src/errors.ts'
import { jobId } from '../../../src/job/envelope/ids.ts'
import { sightOf } from '../../../src/store/sight.ts'
import { findJobs } from '../../operate/explain.ts'
import type { JobName, Sources } from '../../operate/find-facts.ts'
import type { ConsoleApp } from '../app.ts'
import type { ConsoleDeps } from '../deps.ts'
import { command } from '../figures.ts'
import { type Html, html, type Path, path } from '../html.ts'
import { isNumberLikeCard } from '../sender-text.ts'
import { sessionOf } from '../server/guard.ts'
import { framed, refuse, sendPage } from '../server/page.ts'
import { readerOf } from './reader.ts'

/** How long queues and the failed set are searched, in ms. */
export const LOOK_MS = 400
const SEARCHES = 60
const MINUTE_MS = 60_000
/** The longest name is a reference; what is longer is nobody's. */
const NAME_MAX = 300
const Form = z.object({ what: z.string().max(4_000) })

export function searchRoutes(app: ConsoleApp, deps: ConsoleDeps): void {
  const limit = app.createRateLimit({
    max: SEARCHES,
    timeWindow: MINUTE_MS,
    keyGenerator: request => sessionOf(request).personId,
  })

  app.get('/explain', async (request, reply) => {
    const session = sessionOf(request)
    const content = html`<h1>Explain</h1>${explainContent()}`
    return sendPage(reply, 200, framed(deps, { title: 'Explain', session, at: 'explain', content }))
  })

  app.post('/search', async (request, reply) => {
    const session = sessionOf(request)
    const counted = await limit(request)
    if (!counted.isAllowed && counted.isExceeded)
      return refuse(deps, request, reply, { status: 429, text: 'Too many searches. Wait a minute, then try again.' })
    const what = Form.safeParse(request.body).data?.what.trim() ?? ''
    const found = isName(what) ? await search(deps, session.entities, what) : undefined
    if (found) return reply.redirect(found.text, 303)
    const content = html`<h1>Nothing found</h1>
<p>Nothing is known by that name, or it is not yours to see.</p>
${explainContent()}`
    return sendPage(reply, 404, framed(deps, { title: 'Nothing found', session, at: 'explain', content }))
  })
}

/** PostgreSQL stores no NUL. */
function isName(what: string): boolean {
  return what.length > 0 && what.length <= NAME_MAX && !what.includes('\0')
}

/** The page of what has this name. If the queues don't answer, the store alone is searched. */
async function search(deps: ConsoleDeps, entities: readonly string[] | null, what: string): Promise<Path | undefined> {
  try {
    return await searchIn(deps, deps.queues, entities, what)
  } catch (error) {
    if (!(error instanceof Fault) || error.code !== 'queue_away') throw error
    return searchIn(deps, undefined, entities, what)
  }
}

async function searchIn(
  { store, clock, catalogue }: ConsoleDeps,
  queues: ConsoleDeps['queues'] | undefined,
  entities: readonly string[] | null,
  what: string,
): Promise<Path | undefined> {
  const now = clock()
  const reader = readerOf(sightOf(entities), { store, queues, catalogue, now })
  const sources: Sources = { reader, queues, catalogue, now, until: performance.now() + LOOK_MS }
  if (isNumberLikeCard(what)) {
    const [receiptId] = await reader.byReference(what, 1)
    return receiptId === undefined ? undefined : path`/explain/jobs/${receiptId}`
  }
  const { as, token, batches, jobs } = await findJobs({ what }, sources)
  if (as === 'token' && token) return path`/explain/tokens/${token.token_id}`
  const [batch] = batches ?? []
  if (batch) return batches?.length === 1 ? path`/batches/${batch.batchNo}` : path`/explain/batches/${batch.batchNo}`
  const [job] = jobs.toSorted((a, b) => (b.receipt?.completedAt ?? 0) - (a.receipt?.completedAt ?? 0))
  return job && pathOf(job)
}

/** A job without a receipt is found again in the queues, by the id that it has there. */
export function pathOf({ receiptId, client, jti, jobId: known, receipt }: JobName): Path {
  const id = receipt ? undefined : (known ?? (jti === undefined ? undefined : jobId(client.clientId, jti)))
  return id === undefined ? path`/explain/jobs/${receiptId}` : path`/explain/jobs/${receiptId}?job=${id}`
}

function explainContent(): Html {
  return html`<form class="look-up" method="post" action="/search">
<label for="what">What happened to</label>
<input id="what" name="what" maxlength="300" autocomplete="off" spellcheck="false" required>
<button class="main" type="submit">Explain</button>
</form>
<dl class="facts names">
<div><dt>A job</dt><dd>its <code>jti</code> (over HTTP: the idempotency key), its reference, the id of its receipt or operation, or its id in the failed set</dd></div>
<div><dt>A token</dt><dd>as senders know it, or its UUID; not the value of a third party’s token</dd></div>
<div><dt>A batch</dt><dd>its id</dd></div>
</dl>
<p class="muted">A number of 12 to 19 digits that could be a card number is looked up as a reference only. Of a name that many jobs share, only the newest 500 are looked at.</p>
<p class="same">A row of a batch’s file, and the reference of a job in the failed set, are found on the command line only: ${command('tokenmill', 'explain', 'BATCH', 'LINE')}</p>`
}
