// Acts on a batch, and notes on it.
import { BATCH_ACTS, type BatchActName, batchActOf } from '../../../src/job/system/batch-act.ts'
import { seenOf, stateOf } from '../../../src/store/batch/batch-state.ts'
import type { SeenBatch } from '../../../src/store/console/batches.ts'
import { actRoutes } from '../acts/act-routes.ts'
import { type ActSubject, type Asking, actIn, wordOf } from '../acts/subject.ts'
import { command, id, rows } from '../figures.ts'
import { html, path } from '../html.ts'
import { openLivePart } from '../live/texts.ts'
import { stateMark } from '../state-mark.ts'
import { isPossible, progress } from './content.ts'
import { batchOf } from './facts.ts'

const BATCH: ActSubject = {
  route: '/batches/:no/:act',
  at: 'batches',

  async show(asking) {
    const found = await findBatch(asking)
    if (!found) return undefined
    const { act, batch } = found
    const { verb, asks, effect } = batchActOf(act)
    const isNote = asks !== undefined
    const word = wordOf(act)
    const state = stateOf(batch, asking.deps.clock())
    const left = leftOf(batch)
    return {
      act,
      to: path`/batches/${batch.batchNo}/${word}`,
      back: { to: path`/batches/${batch.batchNo}`, text: 'Back to the batch' },
      shown: html`<p>${id(batch.batchId)} ${stateMark(state)}</p>${isNote ? undefined : html`\n${progress(openLivePart(), batch)}`}`,
      counted: isNote ? 'this note' : left,
      effect: isPossible(act, batch, state) ? effect(left) : undefined,
      instead: `It is ${state}, so there is nothing to ${verb.toLowerCase()}.`,
      seen: seenOf(batch),
      fields: {},
      command: command(
        ...['tokenmill', 'batch', word, batch.batchId, '--client', batch.clientId],
        ...(isNote ? ['--reason', 'TEXT'] : []),
      ),
    }
  },

  async sign(asking) {
    const found = await findBatch(asking)
    if (!found) return undefined
    const { batchNo, batchId, clientId } = found.batch
    return { act: found.act, subject: batchId, parameters: { client_id: clientId }, batchNo }
  },
}

async function findBatch({
  deps,
  session,
  asked,
}: Asking): Promise<{ act: BatchActName; batch: SeenBatch } | undefined> {
  const act = actIn(BATCH_ACTS, 'batch', asked)
  const batch = act && (await batchOf(deps, session, asked.params['no'] ?? ''))
  return act && batch && { act, batch }
}

/** The rows that aren't done, in words: `41,200 rows`. */
function leftOf({ extentRows, rowsDone }: Pick<SeenBatch, 'extentRows' | 'rowsDone'>): string {
  return extentRows === null ? 'all further rows' : rows(Math.max(0, extentRows - rowsDone))
}

export const batchActRoutes = actRoutes(BATCH)
