// What is asked for of the reporting service, and the record of a report.
import { z } from 'zod'
import { REPORT_STATUSES } from '../../../src/job/choices.ts'
import { uuid } from '../../../src/job/envelope/text.ts'
import { Report } from '../../../src/job/report.ts'

export const ReportOrder = z.strictObject({
  reportType: Report.shape.report_type,
  reportEntityUid: uuid().describe('UUID of the entity that the report is about. The client must act for it.'),
  reportParameter: Report.shape.parameters,
  mimeType: Report.shape.mime_type,
  refresh: z.boolean().optional().describe('`true`: the report is made anew, even if there is one. Absent: `false`.'),
})
export type ReportOrder = z.infer<typeof ReportOrder>

export const ReportRecord = z.strictObject({
  reportUid: z.guid(),
  reportType: Report.shape.report_type,
  reportParameter: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])),
  mimeType: Report.shape.mime_type,
  reportEntityUid: z.guid(),
  fileName: z.string().optional().describe('Name of the file. Known once it is `SUCCESSFUL`.'),
  createdOn: z.iso.datetime(),
  modifiedOn: z.iso.datetime(),
  status: z.enum(REPORT_STATUSES),
  lines: z.int().optional(),
  bytes: z.int().optional(),
  sha256: z.string().optional().describe('SHA-256 of the file, 64 hexadecimal digits. Known once it is `SUCCESSFUL`.'),
  failureReason: z.string().optional(),
})
export type ReportRecord = z.infer<typeof ReportRecord>
