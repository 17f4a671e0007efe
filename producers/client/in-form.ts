// The form in which the chunks of a batch are sent. All chunks of a batch have one form, because the same rows in another
// form are another chunk. A worker that doesn't know a form refuses it before a receipt, and the sender falls back once.

import type { Result } from '../../src/job/answer/result.ts'
import type { BlockForm } from '../../src/job/record-columns.ts'

export interface RecordForm {
  /** The form of the next chunk. It changes when the answer to a chunk shows that the batch has the other form. */
  now: BlockForm
  /** The form never changes, because the run's records can't stand in columns. */
  isFixed?: true
}

/**
 * Sends a chunk in the form of the batch. If it is refused as one of another form, it is sent once more in the other
 * form: the refused one took no effect. If the second chunk is also refused as one of another form, the first refusal is
 * returned.
 *
 * A chunk that was on the queue twice may be done by one worker, and its repeat be refused by another that doesn't know the
 * form. Then the chunk in the other form is refused as a repeat of other content, and the chunk is sent once more in the first
 * form: a worker that knows it answers from the receipt.
 */
export async function sendInForm(form: RecordForm, send: (form: BlockForm) => Promise<Result>): Promise<Result> {
  const first = form.now
  const result = await send(first)
  const other = first === 'rows' ? 'columns' : 'rows'
  const again = !form.isFixed && isOfOtherForm(result) ? await send(other) : undefined
  if (!again) return result
  if (!isOfOtherForm(again)) {
    form.now = other
    return again
  }
  if (!isUnknown(result) || !isRepeat(again)) return result
  const third = await send(first)
  return isOfOtherForm(third) ? result : third
}

const codeOf = ({ error }: Result, field: string) => error?.details?.[field]?.code

/** Whether a receipt has other content than the chunk: it was done in the other form, or is another chunk. */
function isRepeat(result: Result): boolean {
  return codeOf(result, 'body.jti') === 'jti_reused'
}

/**
 * Whether a worker that doesn't know the form refused the chunk: it knows neither the form's name nor all of its columns, it
 * counted the lines, or it doesn't know the member `columns`.
 */
function isUnknown(result: Result): boolean {
  const block = codeOf(result, 'body.request.block')
  return block === 'field_format' || block === 'block_records' || codeOf(result, 'body.columns') === 'field_unknown'
}

/** Whether the refusal may be due to the form: the chunk was done in the other form, or the batch has the other form. */
function isOfOtherForm(result: Result): boolean {
  return isRepeat(result) || isUnknown(result) || codeOf(result, 'body.request.batch_id') === 'batch_layout'
}
