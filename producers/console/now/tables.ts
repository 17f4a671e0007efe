// The lists of Now: open batches by need, the queue of each kind, and hosts. Figures that are not known are a question mark.
import { DEAD_MS } from '../../../src/store/console/now.ts'
import { command, count, duration, id } from '../figures.ts'
import { type Html, html, path } from '../html.ts'
import { timeOf } from '../live/frame.ts'
import { idOf, type LivePart } from '../live/texts.ts'
import { HEARD_MS, shownStateOf } from '../pulse.ts'
import { stateMark } from '../state-mark.ts'
import { ALARMS } from './alarms.ts'
import type { Facts, ShownBatch, ShownKind, Whole } from './facts.ts'
import type { Tone } from './needs.ts'

const UNKNOWN = '?'

export function openBatches(part: LivePart, { batches, areMore }: Pick<Facts, 'batches' | 'areMore'>): Html {
  part.fixed(`more ${areMore}`)
  if (batches.length === 0)
    return html`<section id="batches"><h2>Open batches</h2><div class="empty"><p>Every batch that has rows left is listed here. None that is yours to see is open.</p>
<p>A batch begins with ${command('tokenmill', 'migrate', 'FILE')}</p></div></section>`
  const more = areMore ? html`<p class="more"><a href="/batches">More open batches</a></p>` : undefined
  return html`<section id="batches"><h2>Open batches</h2><table class="open">
<thead><tr><th scope="col">Batch</th><th scope="col">State</th><th scope="col">Rows done</th><th scope="col" class="figure">Rows/s</th><th scope="col" class="figure">Done in</th></tr></thead>
<tbody>${batches.map(batch => batchRow(part, batch))}</tbody></table>${more}</section>`
}

function batchRow(part: LivePart, batch: ShownBatch): Html {
  const { batchNo, batchId, state, isSeen, rowsDone, extentRows, speed } = batch
  const shown = shownStateOf(state, isSeen)
  const own = `batch-${batchNo}`
  part.fixed(`${own} ${state} ${extentRows === null}`)
  const bar =
    extentRows === null
      ? undefined
      : html`<progress id="${`${own}-bar`}" max="${part.attribute(`${own}-bar`, 'max', Math.max(1, extentRows))}" value="${part.attribute(`${own}-bar`, 'value', Math.min(rowsDone, extentRows))}" aria-label="Rows done"></progress>`
  const left = extentRows === null ? 0 : extentRows - rowsDone
  const about = speed !== undefined && speed > 0 && left > 0 ? `about ${duration(left / speed)}` : '–'
  const all = extentRows === null ? html` rows` : html` of ${part.text(`${own}-all`, count(extentRows))}`
  return html`<tr>
<td class="main"><a href="${path`/batches/${batchNo}`}">${id(batchId)}</a></td>
<td class="mark" id="${`${own}-state`}" data-state="${part.attribute(`${own}-state`, 'data-state', shown)}">${stateMark(shown)}</td>
<td class="done"><span class="count">${part.figure(`${own}-rows`, count(rowsDone), 'short')}${all}</span>${bar}</td>
<td class="figure rate">${part.figure(`${own}-rate`, speed === undefined ? '–' : count(speed), 'short')}</td>
<td class="figure eta">${part.figure(`${own}-eta`, about, 'short')}</td>
</tr>`
}

/** Whether workers are heard, and whether the scheduler looks and sums up their minutes. */
interface Known {
  isHeard: boolean
  isWatched: boolean
}

export function kinds(part: LivePart, whole: Whole, known: Known): Html {
  return html`<section id="kinds"><h2>Kinds of job</h2><table class="kinds">
<thead><tr><th scope="col">Kind</th><th scope="col" class="figure">Waiting</th><th scope="col" class="figure">In work</th><th scope="col" class="figure">Oldest</th><th scope="col" class="figure">Done a minute</th><th scope="col" class="figure">95 % began within</th></tr></thead>
<tbody>${whole.kinds.map(kind => kindRow(part, kind, whole, known))}</tbody></table></section>`
}

function kindRow(
  part: LivePart,
  { kind, urgent }: ShownKind,
  { queues, recent, waits }: Whole,
  { isHeard, isWatched }: Known,
): Html {
  const queue = queues.find(one => one.kind === kind && one.agoMs <= HEARD_MS)
  const done = recent.find(one => one.kind === kind)?.n ?? 0
  const p95Ms = waits.find(one => one.kind === kind)?.p95Ms ?? null
  const cell = (name: string, text: string) => part.figure(`kind-${kind}-${name}`, text, 'short')
  const tone = part.attribute(`kind-${kind}`, 'data-tone', queue ? toneOf(urgent, queue) : 'unknown')
  return html`<tr id="${`kind-${kind}`}" data-tone="${tone}"><th scope="row">${kind}</th>
<td class="figure waiting">${cell('waiting', queue ? count(queue.waiting + queue.delayed) : UNKNOWN)}</td>
<td class="figure active">${cell('active', queue ? count(queue.active) : UNKNOWN)}</td>
<td class="figure oldest">${cell('oldest', queue ? waited(queue.oldestMs) : UNKNOWN)}</td>
<td class="figure minute">${cell('done', isHeard ? count(done) : UNKNOWN)}</td>
<td class="figure p95">${cell('p95', isHeard && isWatched ? waited(p95Ms) : UNKNOWN)}</td></tr>`
}

function toneOf(urgent: boolean, { oldestMs }: Whole['queues'][number]): Tone {
  return urgent && oldestMs !== null && oldestMs > ALARMS.interactiveMs ? 'bad' : 'well'
}

function waited(ms: number | null): string {
  if (ms === null) return '–'
  return ms < 1_000 ? `${ms} ms` : duration(ms / 1000)
}

/** How many rows of hosts are shown: those that were silent longest come first. */
const HOSTS_SHOWN = 7

interface HostRow {
  host: string
  role: string
  versions: string
  processes: number
  /** Of the one that was silent longest. */
  silentMs: number
}

export function hosts(part: LivePart, { processes }: Pick<Whole, 'processes'>, now: number): Html {
  const rows = [...Map.groupBy(processes, ({ host, role }) => `${host} ${role}`).values()]
    .map(hostRow)
    .sort((a, b) => tier(b.silentMs) - tier(a.silentMs) || a.host.localeCompare(b.host) || a.role.localeCompare(b.role))
  const shown = rows.slice(0, HOSTS_SHOWN)
  part.fixed(shown.map(row => Object.values({ ...row, silentMs: '' }).join(' ')).join('\n'))
  part.fixed(`hosts ${rows.length}`)
  const more = rows.length - shown.length
  if (rows.length === 0)
    return html`<section id="hosts"><h2>Hosts</h2><div class="empty"><p>Every process of tokenmill is listed here by its heartbeat. None has been heard in the last hour.</p>
<p>${command('tokenmill', 'start')} runs all of them on one host.</p></div></section>`
  return html`<section id="hosts"><h2>Hosts</h2><table class="hosts">
<thead><tr><th scope="col">Host</th><th scope="col">Role</th><th scope="col" class="figure">Processes</th><th scope="col">Release</th><th scope="col" class="figure">Last heartbeat (UTC)</th></tr></thead>
<tbody>${shown.map(row => hostLine(part, row, now))}</tbody></table>
${more > 0 ? html`<p class="more muted">And ${count(more)} more, heard in time; ${command('tokenmill', 'status')} lists all.</p>` : undefined}</section>`
}

/** Sorts by what matters of a silence, so that rows don't change places with each heartbeat. */
function tier(silentMs: number): number {
  return silentMs > DEAD_MS ? 2 : silentMs > HEARD_MS ? 1 : 0
}

function hostRow(ofRole: Whole['processes']): HostRow {
  const [{ host, role } = { host: '', role: '' }] = ofRole
  const versions = [...new Set(ofRole.map(({ version }) => version))].sort().join(', ')
  return { host, role, versions, processes: ofRole.length, silentMs: Math.max(...ofRole.map(one => one.silentMs)) }
}

function hostLine(part: LivePart, { host, role, versions, processes, silentMs }: HostRow, now: number): Html {
  const own = `host-${idOf(`${host} ${role}`)}`
  const tone: Tone = (['well', 'unknown', 'bad'] as const)[tier(silentMs)] ?? 'bad'
  const heard = `${timeOf(now - silentMs)}${tone === 'bad' ? ', silent since' : ''}`
  return html`<tr id="${own}" data-tone="${part.attribute(own, 'data-tone', tone)}"><td class="main">${host}</td><td class="role">${role}</td><td class="figure count">${count(processes)}</td><td class="version">${versions}</td><td class="figure beat">${part.figure(`${own}-beat`, heard, 'short')}</td></tr>`
}
