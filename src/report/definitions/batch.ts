// BATCH_REPORT: the outcomes and reasons of a batch's records, and the number of chunks. The outcomes that each chunk
// counted must equal the records that it lists. It doesn't list single records: the client has those in its results
// file.
import { z } from 'zod'
import { clientId } from '../../job/envelope/envelope.ts'
import { column, type Definition, planner } from '../definition.ts'

const Parameters = z.strictObject({
  batchId: z.string().regex(/^[A-Za-z0-9_-]{1,64}$/),
  clientId: clientId().optional(),
})

export const batch: Definition = {
  title: 'Batch report',
  query: 'batch',
  plan: planner(Parameters, ({ batchId, clientId }) => ({
    filter: { batchId, clientId: clientId ?? null },
    word: batchId,
    notes: [
      `Batch ${batchId}${clientId === undefined ? '' : ` of client ${clientId}`}, as it stood when this report was made.`,
      'Rows = created + updated + unchanged + duplicate + rejected + failed + cancelled. Chunks are those in which a record ended so.',
    ],
  })),
  columns: [
    column('outcome', 'Outcome', 'text', 10),
    column('reason', 'Reason', 'text', 28),
    column('chunks', 'Chunks', 'number', 12),
    column('records', 'Records', 'count', 14),
  ],
  group: ['outcome'],
  groupLabel: 'Outcome',
  rules: [],
  landscape: false,
  chart: { label: 'Records by outcome', by: row => row['outcome'] ?? '', of: 'records' },
}
