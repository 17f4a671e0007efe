// Makes the text of a result from a decision or from a receipt. The text never holds card data in clear.
import type { SingleAnswer } from '../../src/job/answer/receipt-answer.ts'
import { count } from '../../src/job/chunk-outcomes.ts'
import { refusalResultId, resultId } from '../../src/job/envelope/ids.ts'
import { type Counts, type RecordResult, tookEffect } from '../../src/job/outcome.ts'
import { problemOf } from '../../src/job/problem.ts'
import type { StoredAnswer } from '../../src/job/stored-answer.ts'

/** What a result says of its job, whatever the answer. */
export interface ResultHead {
  receiptId: string
  /** 0: the answer to an envelope beside an existing receipt, whose result outranks it. */
  revision: number
  /** The envelope that is answered. */
  envelopeDigest: Buffer
  /** The digest of what that envelope asks for; null if it isn't known. */
  answers: Buffer | null
  kind: string
  /** How the kind's answer is built; undefined if this release doesn't know the kind. */
  retell: StoredAnswer | undefined
  jti: string
  reference: string | null
  attempt: number
  acceptedAt: number
  completedAt: number
}

/** What a receipt says of that. It doesn't say what its envelope asked for. */
export type StoredHead = Omit<ResultHead, 'answers'>

/**
 * The records of a chunk, as its result tells of them. A text is put into the result as it is; `columns` stand only
 * beside such a text.
 */
export interface ToldRecords {
  /** A text: their JSON. */
  records: RecordResult[] | string
  /** The JSON of the records that aren't among `records`, in columns. */
  columns?: string | undefined
}

export type ToldAnswer = SingleAnswer | ToldRecords

export interface ResultText {
  resultId: string
  body: string
  /** It tells of records in columns. */
  inColumns: boolean
}

export function resultOf(head: ResultHead, answer: ToldAnswer): ResultText {
  const { receiptId, revision, envelopeDigest, answers, kind, retell, jti, reference } = head
  const { attempt, acceptedAt, completedAt } = head
  const id = revision === 0 ? refusalResultId(receiptId, envelopeDigest) : resultId(receiptId, revision)
  const error = 'failure' in answer ? problemOf(answer.failure, completedAt) : undefined
  const success = 'record' in answer ? answer : undefined
  const { records, columns }: Partial<ToldRecords> = 'records' in answer ? answer : {}
  const first = JSON.stringify({
    v: 1,
    type: 'result',
    result_id: id,
    receipt_id: receiptId,
    revision,
    kind,
    jti,
    envelope: envelopeDigest.toString('base64url'),
    ...(answers === null ? {} : { answers: answers.toString('base64url') }),
    ...(reference === null ? {} : { reference }),
    status: error ? 'FAILED' : 'SUCCEEDED',
    code: error ? error.code : (success?.code ?? 200),
    ...(success ? { record: success.record } : {}),
    ...(error ? { error } : {}),
    ...(records && typeof records !== 'string' ? recordsOf(retell, records) : {}),
  })
  const inColumns = typeof records === 'string' && columns !== undefined
  const beside = inColumns ? `,"columns":${columns}` : ''
  const told = typeof records === 'string' ? `,"records":${records}${beside}` : ''
  const tail = JSON.stringify({
    attempt,
    accepted_at: new Date(acceptedAt).toISOString(),
    completed_at: new Date(completedAt).toISOString(),
  })
  return { resultId: id, inColumns, body: `${first.slice(0, -1)}${told},${tail.slice(1)}` }
}

/** For some kinds a result lists only the records without effect, and counts the others. */
function recordsOf(
  retell: StoredAnswer | undefined,
  records: RecordResult[],
): { counts?: Counts; records: RecordResult[] } {
  if (retell?.from !== 'outcomes' || retell.tells === 'all') return { records }
  return { counts: count(records), records: records.filter(({ outcome }) => !tookEffect(outcome)) }
}
