// What people and operators did with a batch: its newest rows of the audit.
import * as seenRows from '../../../src/store/console/audit/seen-rows.ts'
import type { SeenBatch } from '../../../src/store/console/seen-batches.ts'
import type { LiveSession } from '../../../src/store/console/sessions.ts'
import { sightOf } from '../../../src/store/console/sight.ts'
import { addressOf } from '../audit/filter.ts'
import { table } from '../audit/list.ts'
import type { ConsoleDeps } from '../deps.ts'
import { type Html, html } from '../html.ts'

const LISTED = 5

/** Undefined: nobody did anything with it, as far as the person may see. */
export async function deedsOf(
  { store }: Pick<ConsoleDeps, 'store'>,
  { entities, personId }: Pick<LiveSession, 'entities' | 'personId'>,
  { clientId, batchId }: Pick<SeenBatch, 'clientId' | 'batchId'>,
): Promise<Html | undefined> {
  const found = await seenRows.listOfBatch(sightOf(entities), store, { clientId, batchId, limit: LISTED })
  const [newest] = found
  if (!newest) return undefined
  return html`<section><h2>What people did with it</h2>${table(found, personId)}
<p class="pages"><a href="${addressOf({ like: newest.auditId })}">All rows of the audit about this id</a></p></section>`
}
