// The rows of a batch that were refused, with their lines and reasons, chunk by chunk from the receipts. A page looks for a
// limited time and says how far it looked: a long batch may have few of them. It shows no reference; the line finds the row in
// the file and in its results.
import { meaningOf } from '../../../src/errors.ts'
import type { SeenBatch } from '../../../src/store/console/batches.ts'
import * as seenRefused from '../../../src/store/console/refused-rows.ts'
import type { Db } from '../../../src/store/pool.ts'
import { type Sight, sightOf } from '../../../src/store/sight.ts'
import type { ConsoleApp } from '../app.ts'
import type { ConsoleDeps } from '../deps.ts'
import { command, count, id, rows } from '../figures.ts'
import { type Html, html, path } from '../html.ts'
import { sessionOf } from '../server/guard.ts'
import { framed, missingPage, sendPage } from '../server/page.ts'
import { refusedOf } from './counted.ts'
import { batchOf } from './facts.ts'

/** How many rows a page lists. */
const LISTED = 100
/** How long a page looks, in ms. */
const LOOK_MS = 150
/** How many chunks one statement looks at. */
const CHUNKS = 1_000

/** A row of a chunk; `place` 0: before its first. */
export interface RowPlace {
  chunk: number
  place: number
}

export const FIRST: RowPlace = { chunk: 0, place: 0 }

export interface Look {
  found: seenRefused.RefusedRow[]
  /** Where the next look begins; undefined: there is no further chunk. */
  next: RowPlace | undefined
}

/** Finds refused rows behind this place until it has `limit` (at most 1,000), or has looked for `ms`. */
export async function lookForRefused(
  sight: Sight,
  db: Db,
  { batchNo, after, limit, ms }: { batchNo: number; after: RowPlace; limit: number; ms: number },
): Promise<Look> {
  const found: seenRefused.RefusedRow[] = []
  const endsAt = performance.now() + ms
  let next = after
  for (;;) {
    const { chunks, last } = await seenRefused.findChunks(sight, db, { batchNo, from: next.chunk, limit: CHUNKS })
    if (last === null) return { found, next: undefined }
    for (const chunk of chunks) {
      const place = chunk === next.chunk ? next.place : 0
      found.push(...(await seenRefused.list(sight, db, { batchNo, chunk, after: place, limit: limit - found.length })))
      const end = found.at(-1)
      if (end && found.length >= limit) return { found, next: { chunk: end.chunk, place: end.place } }
      next = { chunk: chunk + 1, place: 0 }
      if (performance.now() >= endsAt) return { found, next }
    }
    next = { chunk: last + 1, place: 0 }
    if (performance.now() >= endsAt) return { found, next }
  }
}

type Asked = { Params: { no: string }; Querystring: { after?: string } }

export function refusedRoutes(app: ConsoleApp, deps: ConsoleDeps): void {
  app.get<Asked>('/batches/:no/refused', async (request, reply) => {
    const session = sessionOf(request)
    const batch = await batchOf(deps, session, request.params.no)
    if (!batch) return sendPage(reply, 404, missingPage(deps, session))
    const after = readPlace(request.query.after)
    const wanted = { batchNo: batch.batchNo, after, limit: LISTED, ms: LOOK_MS }
    const look = await lookForRefused(sightOf(session.entities), deps.store, wanted)
    const page = { title: 'Refused rows', session, at: 'batches', content: content(batch, after, look) } as const
    return sendPage(reply, 200, framed(deps, page))
  })
}

function readPlace(text: unknown): RowPlace {
  const [, chunk, place] = typeof text === 'string' ? (/^(\d{1,9})-(\d{1,9})$/.exec(text) ?? []) : []
  return chunk === undefined ? FIRST : { chunk: Number(chunk), place: Number(place) }
}

function content(batch: SeenBatch, after: RowPlace, look: Look): Html {
  const { batchNo, batchId } = batch
  const isFirst = after.chunk === 0 && after.place === 0
  const { found, next } = look
  return html`<p class="up"><a href="${path`/batches/${batchNo}`}">Back to the batch</a></p>
<h1>Refused rows</h1>
<p>${rows(refusedOf(batch))} of ${id(batchId)} ended as REJECTED or FAILED. The line is that of the source, and the results have the row under it, with its reference.</p>
${found.length === 0 ? undefined : table(found)}
<p>${howFar(batch, look, isFirst)}</p>
<p class="pages">${isFirst ? undefined : html`<a href="${path`/batches/${batchNo}/refused`}">From the beginning</a> `}${next && html`<a href="${path`/batches/${batchNo}/refused?after=${`${next.chunk}-${next.place}`}`}">${found.length >= LISTED ? 'Next page' : 'Look further'}</a>`}</p>
<form class="csv" method="post" action="${path`/batches/${batchNo}/refused/csv`}"><button type="submit">Refused rows as CSV</button> <span class="muted">Up to 100,000 rows. The audit says that you took them.</span></form>
<p class="same">How often which reason came: ${command('tokenmill', 'batch', 'show', batchId, '--client', batch.clientId)}</p>`
}

function howFar({ extentChunks, chunksDone }: SeenBatch, { found, next }: Look, isFirst: boolean): string {
  const all = count(extentChunks ?? chunksDone)
  if (next && found.length < LISTED)
    return `Looked up to chunk ${count(next.chunk)} of ${all}; it takes longer to look at all.`
  if (next) return ''
  if (found.length > 0 || !isFirst)
    return 'These are the last. Chunks that ended without a receipt are not listed row by row.'
  return 'None is listed: receipts are kept for a time (TOKENMILL_RECEIPT_DAYS), and a chunk that was refused as a whole has none. The results have every row.'
}

function table(found: readonly seenRefused.RefusedRow[]): Html {
  const row = ({ line, outcome, reason }: seenRefused.RefusedRow) =>
    html`<tr><th scope="row" class="figure">${line}</th><td>${outcome}</td><td>${reason ?? 'none given'}</td><td class="meaning">${reason === null ? undefined : meaningOf(reason).text}</td></tr>`
  return html`<table class="refused-rows"><thead><tr><th scope="col" class="figure">Line</th><th scope="col">Outcome</th><th scope="col">Reason</th><th scope="col" class="meaning">What it means</th></tr></thead>
<tbody>${found.map(row)}</tbody></table>`
}
