// Makes one report: reads its rows in one snapshot, compares the sums and writes the file. It runs in a separate
// process, which reads the store with the reader role and holds no key. The worker stores the result.
import { Fault, isRefusal } from '../../src/errors.ts'
import type { MimeType, ReportType } from '../../src/job/report.ts'
import { writeCsv } from '../../src/report/csv.ts'
import type { Definition, Plan } from '../../src/report/definition.ts'
import { definitionOf } from '../../src/report/definitions.ts'
import { fileName, storageKey } from '../../src/report/files/file-name.ts'
import type { ReportFiles } from '../../src/report/files/files.ts'
import type { Write } from '../../src/report/report-header.ts'
import { writeText } from '../../src/report/text.ts'
import { type Entry, type Total, tieOut, totalsOf } from '../../src/report/tie-out.ts'
import type { Store } from '../../src/store/pool.ts'
import { withRows } from '../../src/store/report/report-rows.ts'
import type { Made } from '../../src/store/report/reports.ts'

export interface ReportTask {
  reportUid: string
  reportType: ReportType
  entityId: string
  parameters: Record<string, string | number | boolean>
  mimeType: MimeType
}

/** The library for PDF takes a while to load, so it is loaded only if needed. */
const WRITERS: Record<MimeType, () => Promise<Write>> = {
  'text/csv': async () => writeCsv,
  'text/plain': async () => writeText,
  'application/pdf': async () => (await import('../../src/report/pdf/pdf.ts')).writePdf,
}

/** Makes a report. Throws `Mismatch` or a `Fault`. `onLines`: called with the number of lines read so far. */
export async function makeReport(
  { store, files }: { store: Store; files: ReportFiles },
  task: ReportTask,
  onLines: (lines: number) => void,
): Promise<Made> {
  const { reportUid, reportType, entityId, parameters, mimeType } = task
  const definition = definitionOf(reportType)
  const plan = definition?.plan(parameters)
  if (!definition || !plan || isRefusal(plan)) throw new Fault('defect')
  const write = await WRITERS[mimeType]()
  return withRows(store, definition.query, entityId, plan.filter, async snapshot => {
    const totals = totalsOf(definition, snapshot.totals)
    const counter = { lines: 0 }
    const entries = counted(tieOut(definition, plan, snapshot), counter, onLines)
    const name = fileName(reportType, plan, mimeType, reportUid)
    const head = { reportUid, entityId, asOf: snapshot.asOf, totals }
    const stored = await files.put(write(definition, noted(definition, plan, snapshot.since), head, entries), sha256 =>
      storageKey(name, sha256),
    )
    return {
      fileName: name,
      storageKey: stored.key,
      bytes: stored.bytes,
      sha256: stored.sha256,
      lines: counter.lines,
      totals: totals.map(shownTotal),
      periodClosed: plan.period !== undefined && plan.period.to < snapshot.today,
      asOf: snapshot.asOf,
    }
  })
}

/** The plan with a note if what the report counts was removed for a part of its period. */
function noted({ incomplete }: Definition, plan: Plan, since: string | null): Plan {
  if (!incomplete || !plan.period || since === null || plan.period.from >= since) return plan
  return { ...plan, notes: [...plan.notes, incomplete(since)] }
}

async function* counted(
  pages: AsyncIterable<Entry[]>,
  counter: { lines: number },
  onLines: (lines: number) => void,
): AsyncGenerator<Entry[], void, void> {
  onLines(0)
  for await (const page of pages) {
    for (const { kind } of page) if (kind === 'line') counter.lines += 1
    onLines(counter.lines)
    yield page
  }
}

function shownTotal({ currency, lines, sums }: Total) {
  const texts = Object.fromEntries(Object.entries(sums).map(([name, sum]) => [name, `${sum}`]))
  return { ...(currency === undefined ? {} : { currency }), lines: `${lines}`, sums: texts }
}
