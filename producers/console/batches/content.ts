// The content of the page of one batch: its progress, how it went, what became of its rows, its facts, and what may be done to it.
// Figures change on the open page; where there is something else to show, the page is asked for anew.
import { basename } from 'node:path'
import { meaningOf } from '../../../src/errors.ts'
import type { BatchState } from '../../../src/job/choices.ts'
import { OUTCOMES, type Outcome } from '../../../src/job/outcome.ts'
import { BATCH_ACTS, type BatchActName, batchActOf, batchRefusal } from '../../../src/job/system/batch-act.ts'
import type { SeenBatch } from '../../../src/store/console/batches.ts'
import type { LiveSession } from '../../../src/store/console/sessions.ts'
import { permittedOf, wordOf } from '../acts/subject.ts'
import { chart } from '../chart/chart.ts'
import { courseOf } from '../chart/course.ts'
import { command, count, duration, id, moment, momentText, rows, withCommands } from '../figures.ts'
import { type Html, html, path, type Value } from '../html.ts'
import { timeOf } from '../live/frame.ts'
import { idOf, type LivePart, type LiveTexts, openLivePart } from '../live/texts.ts'
import { shownStateOf, unseenSince } from '../pulse.ts'
import { stateMark } from '../state-mark.ts'
import { refusedOf } from './counted.ts'
import type { BatchFacts } from './facts.ts'
import { notes } from './notes.ts'

type Viewer = Pick<LiveSession, 'roles' | 'personId'>

/**
 * The content, as a function of the line that says how new it is, and the same as texts of its elements. The texts and the shape are
 * those of everybody who sees the batch; `viewer` (undefined for a stream) adds what depends on the person.
 */
export function contentOf(
  facts: BatchFacts,
  viewer?: Viewer,
): { content: (news: Html | undefined) => Html; texts: LiveTexts } {
  const part = openLivePart()
  const { batch, state, isSeen, now, acts } = facts
  const shown = shownStateOf(state, isSeen)
  const { batchId, clientId } = batch
  part.fixed([shown, batch.pausedAt, batch.extentRows === null, batch.extentChunks === null].join(' '))
  part.fixed(acts === undefined ? 'acts unknown' : acts.map(({ auditId }) => auditId).join(' '))
  const top = html`<h1>${id(batchId)} <span id="batch-state" data-state="${part.attribute('batch-state', 'data-state', shown)}">${stateMark(shown)}</span></h1>`
  const sections = html`${progress(part, batch)}
${why(part, facts)}
${viewer && actLinks(batch, state, viewer)}
<section><h2>Rows over time</h2>${courseSection(part, facts)}</section>
<section><h2>What became of its rows</h2>${outcomes(part, batch)}</section>
<section><h2>Facts</h2>${factList(part, facts)}</section>
${viewer && html`<section><h2>Acts and notes</h2>${notes(batch, acts, viewer)}</section>`}
<section><h2>Files and signatures</h2>${files(batch)}</section>
<p class="same">The same on the command line: ${command('tokenmill', 'batch', 'show', batchId, '--client', clientId)}</p>`
  return {
    content: news => html`<p class="up"><a href="/batches">Batches</a></p>
${top}
${news}
${sections}`,
    texts: part.texts(timeOf(now), isLast(facts)),
  }
}

/** After a batch was cancelled, a chunk that was under way may still be counted. In ms. */
const CANCELLED_MS = 60_000

function isLast({ batch: { cancelledAt, activeAt }, state, now }: BatchFacts): boolean {
  if (state === 'FINISHED') return true
  return state === 'CANCELLED' && now - Math.max(cancelledAt ?? 0, activeAt) > CANCELLED_MS
}

/** Of a state that raises a question, the answer, or the command that has it. */
function why(part: LivePart, facts: BatchFacts): Html | undefined {
  const {
    batch: { batchId, clientId, pausedAt },
    state,
    stall,
  } = facts
  if (shownStateOf(state, facts.isSeen) === 'UNKNOWN') return unseen(part, facts)
  if (state === 'STALLED') {
    const show = `tokenmill batch show ${batchId} --client ${clientId}`
    const told = stall === undefined ? `Why is not known now; this says it: \`${show}\`` : `Why: ${stall}`
    part.content('stall', told.replaceAll('`', ''))
    return html`<p class="effect">No chunk was answered for a minute or more, and rows are outstanding. <strong id="stall" data-figure="long">${withCommands(told)}</strong>.</p>`
  }
  if (state === 'PAUSED' && pausedAt === null)
    return html`<p>Its sender stopped at its own limit. It goes on when the sender runs again without it.</p>`
  if (state === 'OPEN') return html`<p>No chunk has said how many there will be.</p>`
  if (state === 'ABANDONED') return html`<p>No chunk came for 8 days. One that still comes is worked.</p>`
  return undefined
}

function unseen(part: LivePart, { pulse, now }: BatchFacts): Html {
  const since = unseenSince(pulse, now)
  part.fixed(`unseen ${since === undefined}`)
  const when = since === undefined ? undefined : html` since ${part.text('unseen-since', timeOf(since))}`
  return html`<p class="effect">Whether it goes on is unknown${when}: a part of tokenmill does not answer. <a href="/now">Now</a> says more.</p>`
}

function courseSection(part: LivePart, { batch, samples, state, speed, now }: BatchFacts): Html {
  const course = courseOf(batch, samples, { state, speed, now, refused: refusedOf(batch) })
  if (course) return chart(part, course)
  part.fixed(`no chart ${batch.rowsDone === 0}`)
  if (batch.rowsDone === 0) return html`<p class="empty">No row has been answered yet.</p>`
  return html`<p class="empty">How it went is not known: nothing was done for as long as receipts are kept.</p>`
}

/** How far the batch is, as words and as a bar; the bar only if it is known how many rows there are. */
export function progress(
  part: LivePart,
  { batchNo, rowsDone, extentRows }: Pick<SeenBatch, 'batchNo' | 'rowsDone' | 'extentRows'>,
): Html {
  const own = `batch-${batchNo}`
  if (extentRows === null)
    return html`<p class="progress"><strong>${part.figure(`${own}-rows`, rows(rowsDone))}</strong> done; how many there are is not known.</p>`
  const [max, value] = [Math.max(1, extentRows), Math.min(rowsDone, extentRows)]
  return html`<p class="progress"><strong>${part.figure(`${own}-rows`, count(rowsDone))}</strong> of ${part.text(`${own}-all`, rows(extentRows))} done
<progress id="${`${own}-bar`}" max="${part.attribute(`${own}-bar`, 'max', max)}" value="${part.attribute(`${own}-bar`, 'value', value)}" aria-label="Rows done"></progress></p>`
}

/** A note has a link of its own. */
function actLinks(batch: SeenBatch, state: BatchState, viewer: Viewer): Html | undefined {
  const { 'batch.note': _, ...changes } = BATCH_ACTS
  const possible = permittedOf(changes, viewer).filter(name => isPossible(name, batch, state))
  if (possible.length === 0) return undefined
  const link = (name: BatchActName) =>
    html`<li><a class="button" href="${path`/batches/${batch.batchNo}/${wordOf(name)}`}">${batchActOf(name).verb}…</a></li>`
  return html`<ul class="acts">${possible.map(link)}</ul>`
}

export function isPossible(name: BatchActName, { pausedAt }: Pick<SeenBatch, 'pausedAt'>, state: BatchState): boolean {
  return batchRefusal(name, { state, pausedAt }) === undefined
}

function factList(part: LivePart, { batch, state, speed, now }: BatchFacts): Html {
  const { pausedAt, cancelledAt, finishedAt } = batch
  const at = (ms: number | null) => (ms === null ? undefined : html`${moment(ms)} UTC`)
  // What is told when a chunk says it, and doesn't change afterwards.
  const { clientName, recordKind, tokenScope, sourceName, sourceSha256, revision } = batch
  part.fixed(JSON.stringify([clientName, recordKind, tokenScope, sourceName, sourceSha256, revision, cancelledAt]))
  const facts: [string, Value][] = [
    ['Client', clientName === null ? id(batch.clientId) : html`${clientName} ${id(batch.clientId)}`],
    ['Records', recordKind],
    ['Token scope', tokenScope === null ? undefined : id(tokenScope)],
    ['Chunks', part.figure('batch-chunks', chunksOf(batch))],
    ...(state === 'RUNNING' || state === 'OPEN' ? paceFacts(part, batch, speed) : []),
    ['Begun', at(batch.createdAt)],
    ['Last activity', part.figure('batch-active', `${momentText(batch.activeAt)} UTC`)],
    ['Paused', at(pausedAt)],
    ['Cancelled', at(cancelledAt)],
    ['Finished', finishedAt === null ? undefined : html`${at(finishedAt)} (revision ${revision})`],
    ['Read', part.text('batch-read', `${momentText(now)} UTC`)],
  ]
  const known = facts.filter(([, value]) => value !== undefined)
  return html`<dl class="facts">${known.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`
}

function chunksOf({ chunksDone, extentChunks }: SeenBatch): string {
  return extentChunks === null ? count(chunksDone) : `${count(chunksDone)} of ${count(extentChunks)}`
}

/** They stay on the page of a batch that goes on, also while they aren't known. */
function paceFacts(part: LivePart, { extentRows, rowsDone }: SeenBatch, speed: number | undefined): [string, Value][] {
  const left = extentRows === null ? 0 : Math.max(0, extentRows - rowsDone)
  const about = speed !== undefined && speed > 0 && left > 0 ? `about ${duration(left / speed)}, at this rate` : '–'
  const rate = speed === undefined ? '–' : `${count(speed)} rows/s over the last minute`
  return [
    ['Rate', part.figure('batch-rate', rate)],
    ['Done in', part.figure('batch-eta', about)],
  ]
}

/** Outcomes with their reasons in words, and the refused rows. */
function outcomes(
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
function files({
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
