// The entry of the process that makes one report: it receives a task, opens what it needs, makes the report and exits.
// It also ends when the worker that forked it ends.

import { toFault } from '../../src/errors.ts'
import { endWithParent } from '../../src/lifetime.ts'
import { describeError } from '../../src/logger.ts'
import { missingPackage } from '../../src/missing-package.ts'
import { Mismatch } from '../../src/report/tie-out.ts'
import { openStore } from '../../src/store/pool.ts'
import type { Said } from '../../workers/report/child.ts'
import { makeReport, type ReportTask } from '../../workers/report/make.ts'
import { endUncaught } from '../ending.ts'
import { poolsOf } from '../open/connections.ts'
import { openDatabase, openSession, type Session } from '../open/open.ts'
import { openReportFiles } from '../open/report-files.ts'
import { processTerminal, say, takeConsole } from '../terminal.ts'

/** The time limit of one statement of a report, which may sort all rows, in ms. */
const STATEMENT_MS_MAX = 15 * 60_000
const TELL_MS = 1_000

async function answer(session: Session, task: ReportTask): Promise<Said> {
  try {
    const { url } = await openDatabase(session)
    const store = openStore(url, {
      log: session.log,
      connectionsMax: poolsOf(session, 'report').store,
      role: 'tokenmill_reader',
      statementMsMax: STATEMENT_MS_MAX,
      application: 'tokenmill report',
    })
    session.lifetime.onClose('store', () => store.close())
    const files = openReportFiles(session)
    let toldAt = 0
    const made = await makeReport({ store, files }, task, lines => {
      if (performance.now() - toldAt < TELL_MS && lines > 0) return
      toldAt = performance.now()
      process.send?.({ lines } satisfies Said)
    })
    return { made }
  } catch (error) {
    if (error instanceof Mismatch) return { mismatch: error.message }
    const fault = toFault(error)
    const missing = missingPackage(error)
    if (missing !== undefined) say(terminal, `tokenmill: a report could not be made: ${missing}`)
    session.log.warn(
      { report: task.reportUid, fault: fault.code, cause: describeError(fault.cause ?? error) },
      'a report could not be made',
    )
    return { fault: fault.code }
  }
}

endWithParent()
const terminal = processTerminal()
takeConsole(terminal)
process.on('uncaughtException', error => endUncaught(terminal, error))
process.once('message', async (task: ReportTask) => {
  const session = openSession(terminal, 'report')
  const said = await answer(session, task)
  await session.lifetime.close()
  process.send?.(said, () => process.exit(0))
})
