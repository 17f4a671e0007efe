// `tokenmill audit export`: the numbered rows of a span of time, with hashes and MACs, as NDJSON. The export is recorded
// itself.

import { rowLine } from '../../../src/audit/segment.ts'
import { systemClock } from '../../../src/clock.ts'
import * as auditSearch from '../../../src/store/access/audit-search.ts'
import * as audits from '../../../src/store/access/audits.ts'
import { openCommandStore, withSession } from '../../open/open.ts'
import { actor, moment, printJsonLine, say, type Terminal } from '../../terminal.ts'

interface ExportOptions {
  from: number
  to?: number
}

const PAGE = 1_000

export function run(terminal: Terminal, { from, to = systemClock() }: ExportOptions): Promise<void> {
  return withSession(terminal, async session => {
    const { store } = await openCommandStore(session)
    const detail = { from: moment(from), to: moment(to) }
    await audits.insert(store, { actor: actor(), action: 'audit.export', subject: 'audit', detail })
    const span = await auditSearch.spanOf(store, { from, to })
    let rows = 0
    for (let after = span.first - 1; after < span.last; ) {
      const page = await audits.listChained(store, { after, to: span.last, limit: PAGE })
      if (page.length === 0) break
      for (const row of page) await printJsonLine(terminal, rowLine(row))
      rows += page.length
      after = page.at(-1)?.seq ?? span.last
    }
    say(terminal, `${rows} rows`)
  })
}
