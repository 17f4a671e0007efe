// What became of a batch's rows, as a table and as links: outcomes with their reasons in words, the refused rows, and where the
// files of the batch are, which the vault doesn't keep.
import { basename } from 'node:path'
import { meaningOf } from '../../../src/errors.ts'
import { OUTCOMES, type Outcome } from '../../../src/job/outcome.ts'
import type { SeenBatch } from '../../../src/store/console/batches.ts'
import { command, count, id } from '../figures.ts'
import { type Html, html, path } from '../html.ts'
import { idOf, type LivePart } from '../live/texts.ts'
import { refusedOf } from './counted.ts'

export function outcomes(
  part: LivePart,
  { batchNo, counts, reasons }: Pick<SeenBatch, 'batchNo' | 'counts' | 'reasons'>,
): Html {
  const told = OUTCOMES.filter(outcome => counts[outcome] > 0)
  if (told.length === 0) return html`<p class="empty">No row has been answered yet.</p>`
  const lines = told.flatMap(outcome => [
    html`<tr><th scope="row">${outcome}</th><td class="figure">${part.figure(`batch-${batchNo}-${outcome.toLowerCase()}`, count(counts[outcome]), 'short')}</td></tr>`,
    ...reasonLines(part, outcome, reasons[outcome] ?? {}),
  ])
  return html`<table class="outcomes"><thead><tr><th scope="col">Outcome and reason</th><th scope="col" class="figure">Rows</th></tr></thead><tbody>${lines}</tbody></table>
${refusedLink(part, batchNo, refusedOf({ counts }))}`
}

/** The most frequent one first, as it is when the page is made: the shape of the page has no order of them. */
function reasonLines(part: LivePart, outcome: Outcome, reasons: Record<string, number>): Html[] {
  return Object.entries(reasons)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([reason, n]) => ({
      n,
      line: html`<tr class="reason"><th scope="row">${reason}<span class="why">${meaningOf(reason).text}</span></th><td class="figure">${part.figure(`reason-${outcome.toLowerCase()}-${idOf(reason)}`, count(n), 'short')}</td></tr>`,
    }))
    .sort((a, b) => b.n - a.n)
    .map(({ line }) => line)
}

function refusedLink(part: LivePart, batchNo: number, refused: number): Html | undefined {
  if (refused === 0) return undefined
  part.fixed(`one refused ${refused === 1}`)
  const which =
    refused === 1 ? 'row was' : html`${part.figure(`batch-${batchNo}-refused`, count(refused), 'short')} rows were`
  return html`<p><a href="${path`/batches/${batchNo}/refused`}">Which ${which} refused, and why</a></p>`
}

/** The source and its digest, which the batch's first chunk told, and the files that the sender has. */
export function files({
  sourceName,
  sourceSha256,
  batchId,
}: Pick<SeenBatch, 'sourceName' | 'sourceSha256' | 'batchId'>): Html {
  const source =
    sourceName === null && sourceSha256 === null
      ? html`<p>Its sender did not name a file.</p>`
      : html`<dl class="facts"><div><dt>File</dt><dd>${sourceName ?? 'not named'}</dd></div>
<div><dt>SHA-256</dt><dd>${sourceSha256 === null ? 'not told' : id(sourceSha256)}</dd></div></dl>`
  const name = sourceName === null ? 'FILE' : basename(sourceName)
  return html`${source}
<p>The vault keeps neither the file nor the results. After <code>tokenmill migrate</code> they lie where it ran, beside the file unless it was told other names: <code>${name}.results.csv</code> with a line for each row, <code>${name}.manifest.json</code> with the digests and counts, and <code>${name}.manifest.json.jws</code>, the client’s signature over it. A batch sent over HTTP has its results at <code>/v1/batches/${batchId}/results</code>.</p>
<p class="same">To check them there: ${command('tokenmill', 'manifest', 'verify', `${name}.manifest.json`)}</p>`
}
