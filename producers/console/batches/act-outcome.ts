// An act on a batch that was sent, and how the batch is now.
import { stateOf } from '../../../src/store/batch/batch-state.ts'
import type { DescribeSent } from '../acts/subject.ts'
import { id } from '../figures.ts'
import { html, path } from '../html.ts'
import { BATCH_ACTS, type BatchActName } from './acts.ts'
import { batchOf } from './facts.ts'
import { NOTE } from './notes.ts'
import { stateMark } from './state-mark.ts'

export const sentBatchAct: DescribeSent = async ({ deps, session, act: { request, batchNo } }) => {
  const batch = batchNo === null ? undefined : await batchOf(deps, session, String(batchNo))
  const state = batch && stateOf(batch, deps.clock())
  const known = (Object.keys(BATCH_ACTS) as BatchActName[]).find(name => BATCH_ACTS[name].act === request['act'])
  return {
    title: known ? `${BATCH_ACTS[known].verb} a batch` : request['act'] === NOTE.act ? 'A note on a batch' : 'An act',
    at: 'batches',
    facts: [
      [
        'Batch',
        html`${id(String(request['subject']))}${state === undefined ? undefined : html` ${stateMark(state)} now`}`,
      ],
    ],
    back:
      batchNo === null
        ? html`<a href="/batches">All batches</a>`
        : html`<a href="${path`/batches/${batchNo}`}">Back to the batch</a>`,
  }
}
