// Asks for a report. The worker that makes the report checks the parameters of its type, and its answer names what is
// wrong with them.
import type { z } from 'zod'
import type { Refusal } from '../src/errors.ts'
import { Report } from '../src/job/report.ts'
import { type Ask, check } from './ask.ts'

export type ReportRequest = z.input<typeof Report>

export function report(request: ReportRequest): Ask<'report'> | Refusal {
  return check('report', Report, request)
}
