// Where this installation's report files lie, by its settings.
import { join } from 'node:path'
import { openFiles, type ReportFiles } from '../../src/report/files/files.ts'
import type { Session } from './open.ts'

export function openReportFiles({ config, terminal, lifetime }: Session): ReportFiles {
  const files = openFiles({
    url: config.reportsUrl,
    folder: join(config.dataDir, 'reports'),
    endpoint: terminal.env['AWS_ENDPOINT_URL_S3'] || terminal.env['AWS_ENDPOINT_URL'] || undefined,
  })
  lifetime.onClose('report files', () => files.close())
  return files
}
