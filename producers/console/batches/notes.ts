// What people did to a batch, and their notes on it, on the batch's page: who, when, what and why, the newest first.
import { has } from '../../../src/job/system/act-row.ts'
import { BATCH_ACTS } from '../../../src/job/system/batch-act.ts'
import type { SeenAuditRow } from '../../../src/store/console/audit/rows.ts'
import type { SeenBatch } from '../../../src/store/console/batches.ts'
import type { LiveSession } from '../../../src/store/console/sessions.ts'
import { mayDo } from '../acts/subject.ts'
import { addressOf } from '../audit/filter.ts'
import { who } from '../audit/row-text.ts'
import { moment } from '../figures.ts'
import { type Html, html, path } from '../html.ts'
import { shown } from '../sender-text.ts'

/** How many are shown. */
export const NOTES_SHOWN = 20

export function notes(
  { batchNo }: Pick<SeenBatch, 'batchNo'>,
  acts: readonly SeenAuditRow[] | undefined,
  session: Pick<LiveSession, 'roles' | 'personId'>,
): Html {
  const write = mayDo('batch.note', session)
    ? html`<p><a class="button" href="${path`/batches/${batchNo}/note`}">Write a note…</a></p>`
    : undefined
  return html`${list(acts, session)}${write}`
}

function list(acts: readonly SeenAuditRow[] | undefined, session: Pick<LiveSession, 'personId'>): Html {
  if (!acts) return html`<p class="empty">What people did to this batch could not be read now.</p>`
  const [newest] = acts
  if (!newest)
    return html`<p class="empty">What people do to this batch is listed here, with their reasons and notes. Nobody has done anything.</p>`
  const more = acts.length > NOTES_SHOWN ? html`These are the newest ${NOTES_SHOWN}. ` : undefined
  return html`<ol class="notes">${acts.slice(0, NOTES_SHOWN).map(act => note(act, session))}</ol>
<p class="pages">${more}<a href="${addressOf({ like: newest.auditId })}">All rows of the audit about this id</a></p>`
}

function note(row: SeenAuditRow, { personId }: Pick<LiveSession, 'personId'>): Html {
  const { auditId, at, action, reason } = row
  const deed = html`<a href="${path`/audit/${auditId}`}">${has(BATCH_ACTS, action) ? BATCH_ACTS[action].past : action}</a>`
  return html`<li><span class="by">${moment(at)} <strong>${who(row, personId)}</strong> ${deed}</span>${reason === null ? undefined : html`<span class="said">${shown(reason)}</span>`}</li>`
}
