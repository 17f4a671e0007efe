// Acts on a batch: pause, resume and cancel.
import { seenOf, stateOf } from '../../../src/store/batch/batch-state.ts'
import { actRoutes } from '../acts/act-routes.ts'
import type { ActSubject } from '../acts/subject.ts'
import { command, id } from '../figures.ts'
import { html, path } from '../html.ts'
import { openLivePart } from '../live/texts.ts'
import { BATCH_ACTS, isBatchAct, leftOf, possibleIn } from './acts.ts'
import { progress } from './content.ts'
import { batchOf } from './facts.ts'
import { NOTE } from './notes.ts'
import { stateMark } from './state-mark.ts'

const BATCH: ActSubject = {
  route: '/batches/:no/:act',
  at: 'batches',
  noun: 'a batch',

  async show({ deps, session, asked }) {
    const { no = '', act = '' } = asked.params
    const batch = isBatchAct(act) ? await batchOf(deps, session, no) : undefined
    if (!batch || !isBatchAct(act)) return undefined
    const words = BATCH_ACTS[act]
    const state = stateOf(batch, deps.clock())
    const left = leftOf(batch)
    return {
      words,
      to: path`/batches/${batch.batchNo}/${act}`,
      back: { to: path`/batches/${batch.batchNo}`, text: 'Back to the batch' },
      shown: html`<p>${id(batch.batchId)} ${stateMark(state)}</p>
${progress(openLivePart(), batch)}`,
      counted: left,
      effect: possibleIn(act, batch, state) ? words.effect(left) : undefined,
      instead: `It is ${state}, so there is nothing to ${words.verb.toLowerCase()}.`,
      seen: seenOf(batch),
      fields: {},
      command: command('tokenmill', 'batch', act, batch.batchId, '--client', batch.clientId),
    }
  },

  async sign({ deps, session, asked }) {
    const { no = '', act = '' } = asked.params
    const batch = isBatchAct(act) ? await batchOf(deps, session, no) : undefined
    if (!batch || !isBatchAct(act)) return undefined
    const { batchNo, batchId, clientId } = batch
    return { words: BATCH_ACTS[act], subject: batchId, parameters: { client_id: clientId }, batchNo }
  },
}

/** A note: its reason is the note. */
const NOTE_SUBJECT: ActSubject = {
  route: '/batches/:no/note',
  at: 'batches',
  noun: 'a note on a batch',

  async show({ deps, session, asked }) {
    const batch = await batchOf(deps, session, asked.params['no'] ?? '')
    if (!batch) return undefined
    const { batchNo, batchId, clientId } = batch
    return {
      words: NOTE,
      to: path`/batches/${batchNo}/note`,
      back: { to: path`/batches/${batchNo}`, text: 'Back to the batch' },
      shown: html`<p>${id(batchId)} ${stateMark(stateOf(batch, deps.clock()))}</p>`,
      counted: 'this note',
      effect:
        'Everybody who sees the batch reads the note on its page. It changes nothing else, and nobody can remove it.',
      instead: '',
      seen: seenOf(batch),
      fields: {},
      command: command('tokenmill', 'batch', 'note', batchId, '--client', clientId, '--reason', 'TEXT'),
    }
  },

  async sign({ deps, session, asked }) {
    const batch = await batchOf(deps, session, asked.params['no'] ?? '')
    if (!batch) return undefined
    const { batchNo, batchId, clientId } = batch
    return { words: NOTE, subject: batchId, parameters: { client_id: clientId }, batchNo }
  },
}

export const batchActRoutes = [actRoutes(BATCH), actRoutes(NOTE_SUBJECT)]
