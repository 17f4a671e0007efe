// Rows of the audit as CSV, with the filters of the page. The columns are named as in `audit list --json`.
import * as auditList from '../../../src/store/access/audit-list.ts'
import * as seenRows from '../../../src/store/console/audit/rows.ts'
import type { Db } from '../../../src/store/pool.ts'
import { type Sight, sightOf } from '../../../src/store/sight.ts'
import type { ConsoleApp } from '../app.ts'
import { sendCsv } from '../csv.ts'
import type { ConsoleDeps } from '../deps.ts'
import { shown } from '../sender-text.ts'
import { sessionOf } from '../server/guard.ts'
import { missingPage, sendPage } from '../server/page.ts'
import { filterOf, readAsked } from './filter.ts'
import { whoText } from './row-text.ts'

const PAGE = 500
const HEAD = [
  ...['seq', 'audit_id', 'at', 'actor', 'actor_name', 'host', 'action', 'subject', 'outcome', 'reason', 'why'],
  ...['proof_sha256', 'unproved'],
]

type Cells = readonly (string | number | null)[]

export function auditCsvRoutes(app: ConsoleApp, deps: ConsoleDeps): void {
  const { store } = deps

  app.post('/audit/csv', async (request, reply) => {
    const session = sessionOf(request)
    const sight = sightOf(session.entities)
    const { after: _, ...asked } = readAsked(request.body)
    const { like } = asked
    if (like !== undefined && !(await seenRows.find(sight, store, like)))
      return sendPage(reply, 404, missingPage(deps, session))
    const given = Object.fromEntries(Object.entries(asked).filter(([, value]) => value !== undefined))
    return sendCsv(deps, session, reply, {
      name: 'audit',
      subject: 'audit',
      parameters: { list: 'audit', ...given },
      head: HEAD,
      pages: () => auditPages(sight, store, filterOf({ ...asked, after: undefined })),
    })
  })
}

/** Rows page by page. Throws if the row behind which it goes on was removed: nobody is to take the rows before it for all. */
export async function* auditPages(
  sight: Sight,
  db: Db,
  filter: auditList.AuditFilter,
): AsyncGenerator<readonly Cells[]> {
  for (let after: number | undefined; ; ) {
    const { found, next } = await auditList.list(sight, db, { ...filter, after, limit: PAGE }, seenRows.SEEN_AUDIT)
    if (found.length === 0 && next === undefined && after !== undefined && !(await seenRows.find(sight, db, after)))
      throw new Error('the row behind which the list goes on was removed')
    yield found.map(cellsOf)
    after = next
    if (after === undefined) return
  }
}

function cellsOf(row: seenRows.SeenAuditRow): Cells {
  const text = (value: string | null) => (value === null ? null : shown(value))
  const { seq, auditId, at, actorName, host, action, subject, outcome, reason, why, proofSha256, isUnproved } = row
  return [
    ...[seq, auditId, new Date(at).toISOString(), whoText(row), actorName, text(host), action, shown(subject), outcome],
    ...[text(reason), text(why), proofSha256, isUnproved ? 'true' : 'false'],
  ]
}
