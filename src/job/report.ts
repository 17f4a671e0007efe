// `report`: requests a report. Each report type defines its own parameters (src/report/definitions).
import { z } from 'zod'
import { MIME_TYPES, REPORT_TYPES } from './choices.ts'
import { text, uuid } from './envelope/text.ts'
import { kind } from './kind-entry.ts'

export { MIME_TYPES, type MimeType, REPORT_TYPES, type ReportType } from './choices.ts'

export const Report = z.strictObject({
  report_type: z.enum(REPORT_TYPES),
  entity_id: uuid(),
  parameters: z.record(z.string().regex(/^[A-Za-z][A-Za-z0-9]{0,63}$/), z.union([text(0, 256), z.int(), z.boolean()])),
  mime_type: z.enum(MIME_TYPES),
  refresh: z.boolean().optional(),
})
export type Report = z.infer<typeof Report>

export const reportKind = kind({
  request: Report,
  description: 'Requests a report.',
  role: 'REPORT_REQUEST',
  bulk: true,
  systemClients: ['gateway', 'scheduler'],
  retell: { from: 'handler' },
  statusAt: 'reports',
})
