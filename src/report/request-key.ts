// Decides whether two requests ask for the same report: type, entity, parameters (with defaults) and MIME type are
// equal.
import { createHash } from 'node:crypto'
import { requestText } from '../job/envelope/digest.ts'
import type { MimeType, ReportType } from '../job/report.ts'

interface Requested {
  reportType: ReportType
  entityId: string
  parameters: Record<string, string | number | boolean>
  mimeType: MimeType
}

/** SHA-256 of these members. */
export function requestKey({ reportType, entityId, parameters, mimeType }: Requested): Buffer {
  return createHash('sha256').update(requestText('report', { reportType, entityId, parameters, mimeType })).digest()
}
