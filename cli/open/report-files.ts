// The place of this installation's report files, by its settings. With an external PostgreSQL the roles may run on
// several hosts, so the data directory of one host isn't a place that all hosts reach.
import { ConfigError } from '../../src/config.ts'
import type { ReportFiles } from '../../src/report/files/files.ts'
import { openFiles } from '../../src/report/files/open.ts'
import type { Session } from './open.ts'

export const NO_REPORTS =
  'REPORTS_URL: must be set, because report files need a place that every host reaches; set it to file:///folder (of all hosts) or s3://bucket/prefix'

/** The place of report files; undefined if there is none. */
export function findReportFiles({ config, terminal, lifetime }: Session): ReportFiles | undefined {
  if (config.reportsUrl === undefined) return undefined
  const files = openFiles({
    url: config.reportsUrl,
    endpoint: terminal.env['AWS_ENDPOINT_URL_S3'] || terminal.env['AWS_ENDPOINT_URL'] || undefined,
  })
  lifetime.onClose('report files', () => files.close())
  return files
}

/** The place of report files. Throws `ConfigError` if there is none. */
export function openReportFiles(session: Session): ReportFiles {
  const files = findReportFiles(session)
  if (!files) throw new ConfigError(NO_REPORTS)
  return files
}
