// The process that makes a report and says nothing more is ended, so that the worker's next report is made.
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { openReportMaker } from '../../../workers/report/child.ts'

const SILENT = fileURLToPath(new URL('../../support/scripts/silent-report.ts', import.meta.url))

it('is ended once it has said nothing for as long as a report may', async () => {
  const make = openReportMaker(SILENT, { ...process.env }, { silentMs: 500 })
  for (let time = 0; time < 2; time += 1)
    await expect(make({} as never, () => {})).rejects.toMatchObject({ code: 'report_died' })
})
