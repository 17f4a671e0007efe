// The text of a result, from what was just decided or from what a receipt remembers. It never holds a card.

import { REASONS } from '../../src/errors.ts'
import type { Kind } from '../../src/job/catalogue.ts'
import { count } from '../../src/job/chunk-outcomes.ts'
import { refusalResultId, resultId } from '../../src/job/envelope/ids.ts'
import { type Counts, type RecordResult, tookEffect } from '../../src/job/outcome.ts'
import { type FieldReason, problemOf, type ReversalStatus } from '../../src/job/problem.ts'

export interface Answer {
  receiptId: string
  /** 0: this answers an envelope beside a receipt that stands, and outranks nothing. */
  revision: number
  /** Needed for revision 0. */
  envelopeDigest?: Buffer
  kind: Kind
  jti: string
  reference: string | null
  attempt: number
  acceptedAt: number
  completedAt: number
  /** One of these three. */
  fields?: FieldReason[]
  success?: { code: 200 | 204; record: Record<string, unknown> }
  records?: RecordResult[]
  /** Beside `fields`. */
  reversalStatus?: ReversalStatus
}

export interface Told {
  resultId: string
  body: string
}

export function tell(answer: Answer): Told {
  const { receiptId, revision, kind, jti, reference, attempt, acceptedAt, completedAt, fields, success, records } =
    answer
  const id =
    revision === 0 && answer.envelopeDigest
      ? refusalResultId(receiptId, answer.envelopeDigest)
      : resultId(receiptId, revision)
  const failed = fields !== undefined
  const code = failed ? REASONS[fields[0]?.reason ?? 'internal'].code : (success?.code ?? 200)
  const body = JSON.stringify({
    v: 1,
    type: 'result',
    result_id: id,
    receipt_id: receiptId,
    revision,
    kind,
    jti,
    ...(reference === null ? {} : { reference }),
    status: failed ? 'FAILED' : 'SUCCEEDED',
    code,
    ...(success ? { record: success.record } : {}),
    ...(failed ? { error: problemOf(fields, completedAt, answer.reversalStatus) } : {}),
    ...(records ? recordsOf(kind, records) : {}),
    attempt,
    accepted_at: new Date(acceptedAt).toISOString(),
    completed_at: new Date(completedAt).toISOString(),
  })
  return { resultId: id, body }
}

/** Of the ledger's lines only those that aren't in it are told one by one: nothing came of the others but that. */
function recordsOf(kind: Kind, records: RecordResult[]): { counts?: Counts; records: RecordResult[] } {
  if (kind !== 'transaction-batch') return { records }
  return { counts: count(records), records: records.filter(({ outcome }) => !tookEffect(outcome)) }
}
