// `tokenmill audit list` and `audit follow`: rows of the audit for people and programs.
import { setTimeout as pause } from 'node:timers/promises'
import * as auditChain from '../../../src/store/access/audit-chain.ts'
import * as auditList from '../../../src/store/access/audit-list.ts'
import * as audits from '../../../src/store/access/audits.ts'
import { ALL } from '../../../src/store/sight.ts'
import type { JsonOption } from '../../command.ts'
import { openCommandStore, withSession } from '../../open/open.ts'
import { print, printJsonLine, type Terminal, table } from '../../terminal.ts'

type ListOptions = JsonOption & Omit<auditList.AuditFilter, 'like'> & { limit: number }

const HEADINGS = ['SEQ', 'AT', 'ACTOR', 'HOST', 'ACTION', 'SUBJECT', 'OUTCOME']
const FOLLOW_MS = 1_000
const PAGE = 500

export function list(terminal: Terminal, options: ListOptions): Promise<void> {
  return withSession(terminal, async session => {
    const { store } = await openCommandStore(session)
    const { actor, action, subject, outcome, since, until, limit } = options
    const asked = { actor, action, subject, outcome, since, until, limit, looked: null }
    const { found } = await auditList.list(ALL, store, asked, auditList.WHOLE_AUDIT)
    print(terminal, options, found.map(shownOf), table(HEADINGS, found.map(cellsOf)))
  })
}

/** Rows are printed by their numbers: a row that was committed late is behind the others, and isn't left out. */
export function follow(terminal: Terminal, options: JsonOption): Promise<void> {
  return withSession(terminal, async session => {
    const { store } = await openCommandStore(session)
    let after = (await auditChain.find(store)).seq
    for (;;) {
      const rows = await audits.listChained(store, { after, to: null, limit: PAGE })
      for (const row of rows)
        if (options.json) await printJsonLine(terminal, JSON.stringify(shownOf(row)))
        else print(terminal, options, undefined, cellsOf(row).join('  '))
      after = rows.at(-1)?.seq ?? after
      if (rows.length < PAGE) await pause(FOLLOW_MS)
    }
  })
}

function shownOf(row: auditList.WholeRow) {
  const { seq, auditId, at, actor, host, action, subject, outcome, detail } = row
  return { seq, audit_id: auditId, at, actor, host, action, subject, outcome, detail }
}

function cellsOf({ seq, at, actor, host, action, subject, outcome }: auditList.WholeRow): string[] {
  return [seq === null ? '-' : String(seq), at.replace(/\d{3}Z$/, 'Z'), actor, host ?? '-', action, subject, outcome]
}
