// How a job is shown: first what to do, then the timeline, then the facts. Senders' texts are shown by `shown`.

import { parseReuseToken } from '../../../src/token/token.ts'
import type { JobFacts, Step } from '../../operate/job-facts.ts'
import type { ReadReceipt } from '../../operate/job-reader.ts'
import { command, count, id, moment, withCommands } from '../figures.ts'
import { type Html, html, path, type Value } from '../html.ts'
import { timeOf } from '../live/frame.ts'
import { isHeard } from '../pulse.ts'
import { shown } from '../sender-text.ts'

/** What a page says of a job. */
export interface Explained {
  facts: JobFacts
  /** Jobs with the same reference or jti, newest first. */
  others: readonly ReadReceipt[]
  /** Of a chunk: the number of its batch. */
  batchNo: number | null
  /** The queues answered. */
  sawQueues: boolean
  /**
   * Of a job that a worker has, by its queue: the time since a worker of its kind was last heard, in ms; null: none is there. The
   * queue alone doesn't show that its worker lives.
   */
  heardMs: number | null
}

interface Options {
  showsReference: boolean
  /** ms since the epoch. */
  now: number
}

export function jobContent(explained: Explained, { showsReference, now }: Options): Html {
  const { facts, others, batchNo, sawQueues } = explained
  const { receipt_id: receiptId, kind } = facts
  const isUnseen = isWorkUnseen(explained)
  const timeline = isUnseen ? facts.timeline.map(step => (step.what === 'queued' ? UNSEEN_STEP : step)) : facts.timeline
  return html`<p class="up"><a href="/explain">Explain</a></p>
<h1>${kind ?? 'Job'} ${isUnseen ? mark('warn', 'UNKNOWN') : standing(facts)}</h1>
${sawQueues ? undefined : html`<p class="effect"><strong>The queues don’t answer.</strong> Whether the job is in a queue now, and whether its answer was read, is unknown. What the store says is below.</p>`}
<section><h2>What to do</h2>${isUnseen ? unseenWork(explained, now) : nextList(facts, sawQueues)}</section>
<section><h2>What happened</h2>
${timeline.length === 0 ? html`<p class="empty">Nothing was written down yet.</p>` : html`<ol class="timeline">${timeline.map(stepItem)}</ol>`}</section>
<section><h2>Facts</h2>${factList(facts, { showsReference, now, batchNo })}</section>
${others.length === 0 ? undefined : otherJobs(others)}
<p class="same">The same on the command line: ${command('tokenmill', 'explain', receiptId)}</p>`
}

const TONES = { plain: '●', warn: '⚠', bad: '✕' } as const
/** The selector after a glyph asks for its form as text, not as a picture. */
const TEXT = '\uFE0E'

function mark(tone: Step['tone'], word: string, isMuted = false): Html {
  return html`<span class="state ${isMuted ? 'muted' : tone}"><span class="glyph" aria-hidden="true">${TONES[tone]}${TEXT}</span>${word}</span>`
}

/** A worker took the job, and it isn't seen that one works: then it isn't known that the job is in work. */
function isWorkUnseen({ facts: { queued, decided }, heardMs }: Explained): boolean {
  return decided === undefined && queued?.state === 'active' && !isHeard({ heardMs })
}

const UNSEEN_STEP: Step = {
  what: 'queued',
  title: 'In its queue now',
  tone: 'warn',
  text: 'A worker took it. Whether that worker lives is not known.',
}

function unseenWork({ facts: { queued }, heardMs }: Explained, now: number): Html {
  const when = heardMs === null ? '' : ` since ${timeOf(now - heardMs)}`
  return html`<p>Unknown${when}: a worker took the job, and no worker that takes ${queued?.queue ?? ''} is heard. If none comes back, another takes the job: start one with ${command('tokenmill', 'workers')}</p>`
}

/** How the job stands, in one word. */
function standing({ decided, failed, queued, operation, told }: JobFacts): Html {
  if (decided?.status === 'SUCCEEDED') return mark('plain', 'DONE', true)
  if (decided) return mark('warn', decided.status === 'FAILED' ? 'REFUSED' : 'CANCELLED')
  if (failed) return mark('bad', 'FAILED')
  if (queued) return mark('plain', queued.state === 'active' ? 'IN WORK' : 'WAITING')
  if (told.some(({ says }) => says !== undefined)) return mark('warn', 'REFUSED')
  return operation?.state === 'QUEUED' ? mark('plain', 'WAITING') : mark('warn', 'UNKNOWN')
}

function nextList({ next, decided, failed, queued, timeline }: JobFacts, sawQueues: boolean): Html {
  // What is to be done about an answer that nobody reads, only its queue shows.
  if (!sawQueues)
    return html`<p>${decided ? 'The job is decided. ' : ''}Whether anything has to be done is unknown until the queues answer.</p>${next.length === 0 ? undefined : stepList(next)}`
  const isWell = decided !== undefined && timeline.every(({ tone }) => tone === 'plain')
  const calm = isWell ? html`<p>Nothing has to be done.</p>` : undefined
  if (next.length > 0) return html`${calm}${stepList(next)}`
  if (decided) return html`<p>Nothing: the job is decided.</p>`
  if (!failed && !queued)
    return html`<p>The job is in no queue, and nothing was decided: the sender may submit it again under the same jti.</p>`
  return html`<p>Nothing now.</p>`
}

function stepList(next: readonly string[]): Html {
  return html`<ul class="next">${next.map(step => html`<li>${withCommands(shown(step))}</li>`)}</ul>`
}

function stepItem({ at, title, text, tone }: Step): Html {
  const when =
    at === undefined ? html`<span class="when muted">–</span>` : html`<span class="when">${precise(at)}</span>`
  return html`<li>${when}<div>${mark(tone, title, tone === 'plain')}<p>${shown(text)}</p></div></li>`
}

/** With milliseconds: steps of a job are often less than a second apart. `at`: RFC 3339 in UTC. */
function precise(at: string): Html {
  return html`<time datetime="${at}">${at.replace('T', ' ').replace('Z', '')}</time>`
}

function factList(facts: JobFacts, { showsReference, now, batchNo }: Options & Pick<Explained, 'batchNo'>): Html {
  const { client, jti, reference, signed_by: signedBy, attempts, decided, receipt_id: receiptId } = facts
  const hidden = html`<span class="muted">shown to operators and administrators</span>`
  const known: [string, Value][] = [
    ['Client', html`${client.name} ${id(client.id)}`],
    ['Signed by', signedBy],
    ['jti', jti === undefined ? undefined : id(shown(jti))],
    ['Reference', reference === undefined ? undefined : showsReference ? shown(reference) : hidden],
    ['Receipt', decided ? id(receiptId) : html`none: nothing was decided; it would be ${id(receiptId)}`],
    ['Answer', decided && `${decided.code}${decided.outcome === undefined ? '' : ` ${decided.outcome}`}`],
    ['Attempts', attempts === undefined ? undefined : count(attempts)],
    ['Token', decided?.token === undefined ? undefined : tokenLink(decided.token)],
    ['Chunk', decided?.chunk === undefined ? undefined : count(decided.chunk)],
    ['Batch', batchNo === null ? undefined : html`<a href="${path`/batches/${batchNo}`}">its batch</a>`],
    ['Copy in the failed set', facts.failed && id(facts.failed.id)],
    ['Read', html`${moment(now)} UTC`],
  ]
  const rows = known.filter(([, value]) => value !== undefined)
  return html`<dl class="facts">${rows.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`
}

function tokenLink(token: string): Html {
  const tokenId = parseReuseToken(token)
  return tokenId === undefined ? id(token) : html`<a href="${path`/explain/tokens/${tokenId}`}">${id(token)}</a>`
}

function otherJobs(others: readonly ReadReceipt[]): Html {
  return html`<section><h2>Other jobs with the same reference or jti</h2>${jobTable(others)}</section>`
}

/** Jobs that have a receipt, as they are listed. */
export function jobTable(jobs: readonly ReadReceipt[]): Html {
  return html`<table class="two-lines jobs"><thead><tr><th scope="col">Job</th><th scope="col">Outcome</th><th scope="col">Decided (UTC)</th></tr></thead>
<tbody>${jobs.map(({ receiptId, kind, status, code, outcome, completedAt }) => {
    const word = status === 'SUCCEEDED' ? (outcome ?? 'DONE') : status === 'FAILED' ? `REFUSED ${code}` : status
    return html`<tr><td class="main"><a href="${path`/explain/jobs/${receiptId}`}">${kind} ${id(receiptId)}</a></td>
<td class="mark">${mark(status === 'SUCCEEDED' ? 'plain' : 'warn', word, status === 'SUCCEEDED')}</td><td class="begun">${moment(completedAt)}</td></tr>`
  })}</tbody></table>`
}
