// `report`: requests a report. Each report type defines its own parameters (src/report/definitions).
import { z } from 'zod'
import { text, uuid } from './envelope/text.ts'

export const REPORT_TYPES = [
  'MERCHANT_SETTLEMENT_REPORT',
  'DAILY_TRANSACTION_REPORT',
  'PARTNER_COMMISSION_REPORT',
  'INVOICE',
  'TOKEN_ACTIVITY_REPORT',
  'SCHEME_TOKEN_REPORT',
  'BATCH_REPORT',
] as const
export type ReportType = (typeof REPORT_TYPES)[number]

export const MIME_TYPES = ['application/pdf', 'text/csv', 'text/plain'] as const
export type MimeType = (typeof MIME_TYPES)[number]

export const Report = z.strictObject({
  report_type: z.enum(REPORT_TYPES),
  entity_id: uuid(),
  parameters: z.record(z.string().regex(/^[A-Za-z][A-Za-z0-9]{0,63}$/), z.union([text(0, 256), z.int(), z.boolean()])),
  mime_type: z.enum(MIME_TYPES),
  refresh: z.boolean().optional(),
})
export type Report = z.infer<typeof Report>
