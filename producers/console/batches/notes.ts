// What people did to a batch, and their notes on it, on the batch's page: who, when, what and why, the newest first.

import type { SeenBatchAct } from '../../../src/store/console/seen-batch-acts.ts'
import type { SeenBatch } from '../../../src/store/console/seen-batches.ts'
import type { LiveSession } from '../../../src/store/console/sessions.ts'
import { type ActWords, mayDo } from '../acts/subject.ts'
import { command, moment } from '../figures.ts'
import { type Html, html, path } from '../html.ts'

/** How many are shown. */
export const NOTES_SHOWN = 20

export const NOTE: ActWords = {
  act: 'batch.note',
  verb: 'Write',
  roles: ['OPERATOR', 'ADMIN'],
  isFinal: false,
  asks: 'The note. Everybody who sees this batch reads it, and it is written into the audit.',
}

const DONE: Record<SeenBatchAct['action'], string> = {
  'batch.pause': 'paused it',
  'batch.resume': 'resumed it',
  'batch.cancel': 'cancelled it',
  'batch.note': 'noted',
}

export function notes(
  { batchNo, batchId }: Pick<SeenBatch, 'batchNo' | 'batchId'>,
  acts: readonly SeenBatchAct[],
  session: Pick<LiveSession, 'roles' | 'personId'>,
): Html {
  const listed =
    acts.length === 0
      ? html`<p class="empty">What people do to this batch is listed here, with their reasons and notes. Nobody has done anything.</p>`
      : html`<ol class="notes">${acts.map(act => note(act, session))}</ol>`
  const write = mayDo(NOTE, session)
    ? html`<p><a class="button" href="${path`/batches/${batchNo}/note`}">Write a note…</a></p>`
    : undefined
  const more =
    acts.length < NOTES_SHOWN ? undefined : html`<p class="muted">The newest ${NOTES_SHOWN}; the audit has all.</p>`
  return html`${listed}${more}${write}
<p class="same">The same on the command line: ${command('tokenmill', 'audit', 'list', '--subject', batchId)}</p>`
}

function note({ at, action, reason, who, personId }: SeenBatchAct, session: Pick<LiveSession, 'personId'>): Html {
  const name =
    personId !== null && personId === session.personId ? html`<strong>You</strong>` : html`<strong>${who}</strong>`
  return html`<li><span class="by">${moment(at)} ${name} ${DONE[action]}</span>${reason === null ? undefined : html`<span class="said">${reason}</span>`}</li>`
}
