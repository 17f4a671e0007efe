// An act on failed jobs that was sent, and how far workers are with it.

import { FAILED_ACTS, type FailedActName, FailedParameters } from '../../../src/job/system/failed-act.ts'
import * as pendingActs from '../../../src/store/console/pending-acts.ts'
import { type DescribeSent, titleOf } from '../acts/subject.ts'
import { count, id, moment } from '../figures.ts'
import { type Html, html } from '../html.ts'
import { listPath } from './filter.ts'
import { jobs, MANY, notDone } from './text.ts'

export const sentFailedAct: DescribeSent = async ({ deps, act: { nonce, request } }) => {
  const parameters = FailedParameters.parse(request['parameters'])
  const { kind } = parameters
  const isMany = 'filter' in parameters || 'ids' in parameters
  const name = request['act'] as FailedActName
  const ends = await pendingActs.listEnds(deps.store, nonce)
  const all = ends.reduce((sum, { copies }) => sum + copies, 0)
  const open = countOf(ends, null)
  const ofKind = {
    kind: deps.catalogue.find(kind) ? kind : undefined,
    code: undefined,
    clientId: undefined,
    since: undefined,
  }
  return {
    ...(isMany && { title: titleOf(name, MANY) }),
    at: 'failed',
    facts: [
      ['Kind', html`${kind}`],
      which(parameters, String(request['subject'])),
      ...(all === 0 ? [] : ([['So far', progress(ends, { all, open, name })]] as const)),
    ],
    back: html`<a href="${listPath(ofKind)}">Failed jobs of this kind</a>`,
    goesOn: open > 0,
    done: doneText(ends, name),
  }
}

function which(parameters: FailedParameters, subject: string): readonly [string, Html] {
  if ('ids' in parameters) return ['Which', html`${jobs(parameters.ids.length)} that were ticked`]
  if (!('filter' in parameters)) return ['Copy', id(subject)]
  return ['Which', html`${jobs(parameters.count)} that failed up to ${moment(parameters.up_to)} UTC`]
}

function countOf(ends: readonly pendingActs.EndedCopies[], outcome: string | null): number {
  return ends.find(end => end.outcome === outcome)?.copies ?? 0
}

/** `38 of 41 sent again; 3 stay: …`. */
function progress(
  ends: readonly pendingActs.EndedCopies[],
  { all, open, name }: { all: number; open: number; name: FailedActName },
): Html {
  const others = ends.filter(({ outcome }) => outcome !== null && outcome !== 'done')
  const bar = html`<progress max="${all}" value="${all - open}" aria-label="Jobs done"></progress>`
  return html`${count(countOf(ends, 'done'))} of ${count(all)} ${FAILED_ACTS[name].past}${open > 0 ? bar : undefined}
${others.map(({ outcome, copies }) => html`<br>Not done: ${notDone(copies, String(outcome))}`)}`
}

function doneText(ends: readonly pendingActs.EndedCopies[], name: FailedActName): string | undefined {
  if (ends.length === 0) return undefined
  return `${jobs(countOf(ends, 'done'))} ${FAILED_ACTS[name].past}. The audit has a row of each.`
}
