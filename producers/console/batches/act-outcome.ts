// An act on a batch that was sent, and how the batch is now.
import { stateOf } from '../../../src/store/batch/batch-state.ts'
import type { DescribeSent } from '../acts/subject.ts'
import { id } from '../figures.ts'
import { html, path } from '../html.ts'
import { stateMark } from '../state-mark.ts'
import { batchOf } from './facts.ts'

export const sentBatchAct: DescribeSent = async ({ deps, session, act: { request, batchNo } }) => {
  const batch = batchNo === null ? undefined : await batchOf(deps, session, String(batchNo))
  const state = batch && stateOf(batch, deps.clock())
  return {
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
