// The page of one batch: its facts, what became of its rows, and what may be done to it.
import { describeError } from '../../../src/log.ts'
import { type BatchState, stateOf } from '../../../src/store/batch/batch-state.ts'
import * as seenRows from '../../../src/store/console/audit/seen-rows.ts'
import type { SeenSample } from '../../../src/store/console/seen-batch-samples.ts'
import * as seenSamples from '../../../src/store/console/seen-batch-samples.ts'
import * as seen from '../../../src/store/console/seen-batches.ts'
import type { LiveSession } from '../../../src/store/console/sessions.ts'
import { sightOf } from '../../../src/store/console/sight.ts'
import { mayDo } from '../acts/subject.ts'
import type { ConsoleApp } from '../app.ts'
import { chart } from '../chart/chart.ts'
import { courseOf } from '../chart/course.ts'
import type { ConsoleDeps } from '../deps.ts'
import { openTurns } from '../failed/turns.ts'
import { command, count, duration, id, moment, rows, withCommands } from '../figures.ts'
import { type Html, html, path, type Value } from '../html.ts'
import { sessionOf } from '../server/guard.ts'
import { framed, missingPage, sendPage } from '../server/page.ts'
import { BATCH_ACTS, type BatchActName, possibleIn } from './acts.ts'
import { refusedOf } from './counted.ts'
import { NOTES_SHOWN, notes } from './notes.ts'
import { files, outcomes } from './outcomes.ts'
import { whyStalledOf } from './stall.ts'
import { stateMark } from './state-mark.ts'

/** The batch of a path, if it is the session's person's to see. */
export async function batchOf(
  { store }: Pick<ConsoleDeps, 'store'>,
  session: Pick<LiveSession, 'entities'>,
  no: string,
): Promise<seen.SeenBatch | undefined> {
  return /^\d{1,15}$/.test(no) ? seen.find(sightOf(session.entities), store, Number(no)) : undefined
}

/** Failed chunks are whole chunks, so one page at a time looks for them. */
const TURNS = { most: 8, mostOfOne: 2 }

export function batchRoutes(app: ConsoleApp, deps: ConsoleDeps): void {
  const inTurn = openTurns(TURNS)
  app.get<{ Params: { no: string } }>('/batches/:no', async (request, reply) => {
    const session = sessionOf(request)
    const batch = await batchOf(deps, session, request.params.no)
    if (!batch) return sendPage(reply, 404, missingPage(deps, session))
    const now = deps.clock()
    const isStalled = stateOf(batch, now) === 'STALLED'
    const [speed, samples, acts, stall] = await Promise.all([
      speedOf(deps, session, batch, now),
      seenSamples.list(sightOf(session.entities), deps.store, batch.batchNo),
      actsOf(deps, session, batch),
      isStalled ? whyStalledOf(deps, session, batch, inTurn) : undefined,
    ])
    const content = batchContent(batch, { session, speed, samples, acts, stall, now })
    return sendPage(reply, 200, framed(deps, { title: 'One batch', session, at: 'batches', content }))
  })
}

/** The newest acts on it, one more than are shown; undefined: they can't be found now, as before `schema upgrade` has built their index. */
async function actsOf(
  { store, log }: Pick<ConsoleDeps, 'store' | 'log'>,
  { entities }: Pick<LiveSession, 'entities'>,
  batch: seen.SeenBatch,
): Promise<seenRows.SeenAuditRow[] | undefined> {
  return seenRows.listOfBatch(sightOf(entities), store, { ...batch, limit: NOTES_SHOWN + 1 }).catch(error => {
    log.warn({ error: describeError(error) }, 'the acts on a batch were not found')
    return undefined
  })
}

/** A batch without activity for longer has no speed to show, in ms. */
const ACTIVE_MS = 120_000

/** Rows per second of a batch that has rows under way. The page shows nothing of it where it can't be found in time. */
async function speedOf(
  { store, log }: Pick<ConsoleDeps, 'store' | 'log'>,
  { entities }: Pick<LiveSession, 'entities'>,
  batch: seen.SeenBatch,
  now: number,
): Promise<number | undefined> {
  const state = stateOf(batch, now)
  if ((state !== 'RUNNING' && state !== 'OPEN') || now - batch.activeAt > ACTIVE_MS) return undefined
  const { batchNo, createdAt } = batch
  return seen.findSpeed(sightOf(entities), store, { batchNo, createdAt, now }).catch(error => {
    log.warn({ error: describeError(error) }, 'the speed of a batch was not found')
    return undefined
  })
}

interface Shown {
  session: Pick<LiveSession, 'roles' | 'personId'>
  /** Rows per second; undefined: the batch isn't going on. */
  speed: number | undefined
  samples: readonly SeenSample[]
  /** Undefined: they were not found. */
  acts: readonly seenRows.SeenAuditRow[] | undefined
  /** Why it is stalled; undefined: it isn't, or that could not be found. */
  stall: string | undefined
  now: number
}

function batchContent(batch: seen.SeenBatch, { session, speed, samples, acts, stall, now }: Shown): Html {
  const state = stateOf(batch, now)
  return html`<p class="up"><a href="/batches">Batches</a></p>
<h1>${id(batch.batchId)} ${stateMark(state)}</h1>
${progress(batch)}
${why(batch, state, stall)}
${actLinks(batch, state, session)}
<section><h2>Rows over time</h2>${courseSection(batch, samples, { state, speed, now })}</section>
<section><h2>What became of its rows</h2>${outcomes(batch)}</section>
<section><h2>Facts</h2>${factList(batch, speed, now)}</section>
<section><h2>Acts and notes</h2>${notes(batch, acts, session)}</section>
<section><h2>Files and signatures</h2>${files(batch)}</section>
<p class="same">The same on the command line: ${command('tokenmill', 'batch', 'show', batch.batchId, '--client', batch.clientId)}</p>`
}

/** Of a state that raises a question, the answer, or the command that has it. */
function why(
  { batchId, clientId, pausedAt }: seen.SeenBatch,
  state: BatchState,
  stall: string | undefined,
): Html | undefined {
  if (state === 'STALLED')
    return html`<p class="effect">No chunk was answered for a minute or more, and rows are outstanding. ${stall === undefined ? html`Why is not known now; this says it: ${command('tokenmill', 'batch', 'show', batchId, '--client', clientId)}` : html`<strong id="stall">Why: ${withCommands(stall)}</strong>.`}</p>`
  if (state === 'PAUSED' && pausedAt === null)
    return html`<p>Its sender stopped at its own limit. It goes on when the sender runs again without it.</p>`
  if (state === 'OPEN') return html`<p>No chunk has said how many there will be.</p>`
  if (state === 'ABANDONED') return html`<p>No chunk came for 8 days. One that still comes is worked.</p>`
  return undefined
}

function courseSection(
  batch: seen.SeenBatch,
  samples: readonly SeenSample[],
  { state, speed, now }: { state: BatchState; speed: number | undefined; now: number },
): Html {
  const course = courseOf(batch, samples, { state, speed, now, refused: refusedOf(batch) })
  if (course) return chart(course)
  if (batch.rowsDone === 0) return html`<p class="empty">No row has been answered yet.</p>`
  return html`<p class="empty">How it went is not known: an earlier release did not note it, or nothing was done for as long as receipts are kept.</p>`
}

/** How far the batch is, as words and as a bar; the bar only if it is known how many rows there are. */
export function progress({
  batchNo,
  rowsDone,
  extentRows,
}: Pick<seen.SeenBatch, 'batchNo' | 'rowsDone' | 'extentRows'>): Html {
  if (extentRows === null)
    return html`<p class="progress"><strong>${rows(rowsDone)}</strong> done; how many there are is not known.</p>`
  return html`<p class="progress"><strong id="batch-${batchNo}-rows">${count(rowsDone)}</strong> of ${rows(extentRows)} done
<progress max="${Math.max(1, extentRows)}" value="${Math.min(rowsDone, extentRows)}" aria-label="Rows done"></progress></p>`
}

function actLinks(batch: seen.SeenBatch, state: BatchState, session: Shown['session']): Html | undefined {
  const names = Object.keys(BATCH_ACTS) as BatchActName[]
  const possible = names.filter(name => possibleIn(name, batch, state) && mayDo(BATCH_ACTS[name], session))
  if (possible.length === 0) return undefined
  const link = (name: BatchActName) =>
    html`<li><a class="button" href="${path`/batches/${batch.batchNo}/${name}`}">${BATCH_ACTS[name].verb}…</a></li>`
  return html`<ul class="acts">${possible.map(link)}</ul>`
}

function factList(batch: seen.SeenBatch, speed: number | undefined, now: number): Html {
  const { extentRows, rowsDone, pausedAt, cancelledAt, finishedAt } = batch
  const left = extentRows === null ? undefined : Math.max(0, extentRows - rowsDone)
  const about = speed !== undefined && speed > 0 && left !== undefined && left > 0 ? left / speed : undefined
  const at = (ms: number | null) => (ms === null ? undefined : html`${moment(ms)} UTC`)
  const facts: [string, Value][] = [
    ['Client', batch.clientName === null ? id(batch.clientId) : html`${batch.clientName} ${id(batch.clientId)}`],
    ['Records', batch.recordKind],
    ['Token scope', batch.tokenScope === null ? undefined : id(batch.tokenScope)],
    [
      'Chunks',
      batch.extentChunks === null
        ? count(batch.chunksDone)
        : `${count(batch.chunksDone)} of ${count(batch.extentChunks)}`,
    ],
    ['Rate', speed === undefined ? undefined : `${count(speed)} rows/s over the last minute`],
    ['Done in', about === undefined ? undefined : `about ${duration(about)}, at this rate`],
    ['Begun', at(batch.createdAt)],
    ['Last activity', at(batch.activeAt)],
    ['Paused', at(pausedAt)],
    ['Cancelled', at(cancelledAt)],
    ['Finished', finishedAt === null ? undefined : html`${at(finishedAt)} (revision ${batch.revision})`],
    ['Read', at(now)],
  ]
  const known = facts.filter(([, value]) => value !== undefined)
  return html`<dl class="facts">${known.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`
}
