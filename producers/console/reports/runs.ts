// The table of runs, for the list of all and for one schedule.
import type { ListedRun, RunKey } from '../../../src/store/console/runs.ts'
import { count, duration, moment } from '../figures.ts'
import { type Html, html, type Path, path } from '../html.ts'
import { when } from '../server/page.ts'
import { stateMark } from '../state-mark.ts'
import { type Seeing, stateOfRun } from './state.ts'
import { entityOf, reasonOf, whatOf } from './text.ts'

export function runPath({ scheduleId, businessDate, entityId }: RunKey): Path {
  return path`/reports/runs/${scheduleId}/${businessDate}/${entityId}`
}

/** `ofOne`: all are of one schedule, which the page names. */
export function runTable(runs: readonly ListedRun[], seeing: Seeing, { ofOne = false } = {}): Html {
  return html`<table class="${ofOne ? 'two-lines runs of-one' : 'two-lines runs'}">
<thead><tr><th scope="col">Day</th>${when(!ofOne, html`<th scope="col">What</th>`)}<th scope="col" class="entity">Entity</th><th scope="col">State</th><th scope="col" class="figure">Rows</th><th scope="col" class="figure made">Made in</th><th scope="col">Due (UTC)</th></tr></thead>
<tbody>${runs.map(run => row(run, seeing, ofOne))}</tbody>
</table>`
}

function row(run: ListedRun, seeing: Seeing, ofOne: boolean): Html {
  const { businessDate, entityId, madeMs, reason, state, dueAt } = run
  const shown = stateOfRun(run, seeing)
  const lines = rowsOf(run)
  return html`<tr>
<td class="main"><a href="${runPath(run)}">${businessDate}</a></td>
${when(!ofOne, html`<td class="what">${whatOf(run)}</td>`)}
<td class="entity">${entityOf(entityId)}</td>
<td class="mark">${stateMark(shown)}${lateFor(run, shown, seeing)}${reason === null || state === 'SUCCEEDED' ? undefined : html` <span class="why muted">${reasonOf(reason)}</span>`}</td>
<td class="figure rows">${lines === null ? undefined : count(lines)}</td>
<td class="figure made">${madeMs === null || state !== 'SUCCEEDED' ? undefined : duration(madeMs / 1000)}</td>
<td class="due">${moment(dueAt)}</td>
</tr>`
}

/** The lines of its report; of the sweep, the tokens that it was about. */
export function rowsOf({ kind, tokens, lines }: Pick<ListedRun, 'kind' | 'tokens' | 'lines'>): number | null {
  return kind === 'token-expiry' ? tokens : lines
}

function lateFor({ dueAt }: ListedRun, shown: string, { now }: Seeing): Html | undefined {
  return shown === 'LATE' ? html` <span class="muted">for ${duration((now - dueAt) / 1000)}</span>` : undefined
}
