// `transaction-batch`: a chunk of ledger transactions. A wrong chunk is refused as a whole; a wrong transaction rejects
// only itself.
import { z } from 'zod'
import { LEDGER_CHUNK } from './choices.ts'
import { CHUNK_NUMBER_MAX, extentMembers } from './envelope/batch-extent.ts'
import { kind } from './kind-entry.ts'
import {
  belong,
  COLUMNS_SCHEMA,
  isColumns,
  isLineNumber,
  LINE_MAX,
  spread,
  type TransactionColumns,
  type TransactionLine,
} from './ledger/columns.ts'
import { custom } from './ledger/transaction.ts'

export { LEDGER_CHUNK } from './choices.ts'

function isLine(value: unknown): value is TransactionLine {
  if (typeof value !== 'object' || value === null) return false
  const { line, transaction, ...rest } = value as Partial<TransactionLine>
  const plain = typeof transaction === 'object' && transaction !== null && !Array.isArray(transaction)
  return isLineNumber(line) && plain && Object.keys(rest).length === 0
}

// Checked by a function instead of a zod schema, because zod would copy a thousand records, which takes as long as the
// rest of the work.
const lines = z
  .array(
    z.unknown().meta({
      type: 'object',
      required: ['line', 'transaction'],
      additionalProperties: false,
      properties: { line: { type: 'integer', minimum: 1, maximum: LINE_MAX }, transaction: { type: 'object' } },
    }),
  )
  .max(LEDGER_CHUNK.recordsMax)
  .refine(all => all.every(isLine), custom('field_type'))
  .meta({ description: 'The lines that are not in `columns`; without `columns` at least one.' })

// Checked by hand, too.
const columns = z
  .unknown()
  .meta(COLUMNS_SCHEMA)
  .refine(isColumns, { ...custom('field_type'), abort: true })

export const TransactionBatch = z
  .strictObject({
    batch_id: z.string().regex(/^[A-Za-z0-9_-]{1,64}$/),
    chunk: z.int().min(0).max(CHUNK_NUMBER_MAX),
    ...extentMembers,
    columns: columns.optional(),
    transactions: lines,
  })
  // Checked even if other members are wrong, so that an answer names every wrong member.
  .refine(hasLines, { path: ['transactions'], ...custom('field_length'), when: ({ value }) => isChunk(value) })
  .refine(isWhole, { path: ['columns'], ...custom('field_conflict') })
export type TransactionBatch = z.infer<typeof TransactionBatch>

function isChunk(value: unknown): boolean {
  return (
    typeof value === 'object' && value !== null && Array.isArray((value as { transactions?: unknown }).transactions)
  )
}

function hasLines(request: { transactions: readonly unknown[]; columns?: unknown }): boolean {
  const count = linesIn(request) ?? 0
  return count >= 1 && (count <= LEDGER_CHUNK.recordsMax || request.transactions.length === count)
}

function isWhole(request: { transactions: readonly unknown[]; columns?: unknown }): boolean {
  const columns = columnsOf(request)
  return columns === undefined || belong(columns, request.transactions)
}

/** How many lines a request holds; the request may be malformed. */
export function linesIn({ transactions, columns }: { transactions?: unknown; columns?: unknown }): number | undefined {
  if (!Array.isArray(transactions)) return undefined
  const { line } = (columns ?? {}) as { line?: unknown }
  return transactions.length + (Array.isArray(line) ? line.length : 0)
}

export const transactionBatchKind = kind({
  request: TransactionBatch,
  description: 'One chunk of ledger transactions.',
  role: 'LEDGER_WRITE',
  bulk: true,
  recordsIn: linesIn,
  // A repeat lists only the lines without effect: a line that is in the ledger needs no further answer.
  retell: { from: 'outcomes', tells: 'without-effect' },
})

/** The columns of a parsed request, if it has some. */
export function columnsOf({ columns }: { columns?: unknown }): TransactionColumns | undefined {
  return columns as TransactionColumns | undefined
}

/** The lines of a parsed request that aren't in columns. */
export function othersOf({ transactions }: Pick<TransactionBatch, 'transactions'>): readonly TransactionLine[] {
  return transactions as TransactionLine[]
}

/** The lines of a parsed request in their order, whatever its form is. */
export function linesOf(request: TransactionBatch): readonly TransactionLine[] {
  const columns = columnsOf(request)
  return columns ? spread(columns, othersOf(request)) : othersOf(request)
}
