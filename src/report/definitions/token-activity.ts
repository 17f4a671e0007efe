// TOKEN_ACTIVITY_REPORT: what happened to an entity's tokens, by scope and day (UTC). Tokens created and deleted are
// counted from the tokens' rows. Changes are counted from the receipts of the jobs that made them, which are kept for
// TOKENMILL_RECEIPT_DAYS. A row doesn't tell when its token was suspended, only when it was last changed.
import { z } from 'zod'
import { date } from '../../job/envelope/text.ts'
import { column, type Definition, planner, span } from '../definition.ts'
import { isPeriod } from '../invoice-period.ts'

const Parameters = z
  .strictObject({ reportableDay: date(), reportableDayTo: date().optional() })
  .refine(({ reportableDay: from, reportableDayTo: to = from }) => isPeriod(from, to), {
    path: ['reportableDayTo'],
    params: { reason: 'field_range' },
  })

export const tokenActivity: Definition = {
  title: 'Token activity report',
  query: 'token-activity',
  plan: planner(Parameters, ({ reportableDay: from, reportableDayTo: to = from }) => ({
    period: { from, to },
    notes: [
      `Tokens by scope and day (UTC), ${span(from, to)}.`,
      'Updated counts operations that changed a token.',
      'Suspended counts tokens that were last changed that day and were suspended when this report was made.',
    ],
  })),
  incomplete: since => `Updated is not complete for days before ${since}: their receipts are not kept any more.`,
  columns: [
    column('tokenScope', 'Token scope', 'text', 36, 44),
    column('day', 'Day', 'date', 10, 13),
    column('created', 'Created', 'count', 12),
    column('updated', 'Updated', 'count', 12),
    column('suspended', 'Suspended', 'count', 12),
    column('deleted', 'Deleted', 'count', 12),
  ],
  group: ['tokenScope'],
  groupLabel: 'Token scope',
  rules: [],
  landscape: false,
  chart: { label: 'Created by day', by: row => row['day'] ?? '', of: 'created' },
}
