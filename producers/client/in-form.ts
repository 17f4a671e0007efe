// The form in which the chunks of a batch are sent: in columns where every live worker reads them, else in rows. All
// chunks of a batch have the form of its first one, because the same rows in another form are another chunk. If a run
// doesn't know the form of its batch, its first chunk finds the form out.

import type { Feature } from '../../src/job/envelope/features.ts'
import type { BlockForm } from '../../src/job/record-columns.ts'
import type { Result } from '../../src/job/result.ts'
import type { FileRunDeps } from '../file-run.ts'
import { listedFeatures } from '../live-features.ts'
import { openTrustedKeys } from './trusted-keys.ts'

export interface RecordForm {
  /** The form of the next chunk. It changes when the answer to a chunk shows that the batch has the other form. */
  now: BlockForm
  /** A chunk was answered: the next ones needn't go alone. */
  isSettled: boolean
  /** The form never changes, because the run's records can't stand in columns. */
  isFixed?: true
}

/**
 * The form of a batch of which nothing is known: columns if every live worker announces the feature. Never throws: without
 * an answer, rows are sent.
 */
export async function formByFeature(feature: Feature, deps: FileRunDeps): Promise<RecordForm> {
  const { queues, credentials, log, clock } = deps
  const read = deps.features ?? listedFeatures(queues, openTrustedKeys(credentials, log), clock)
  const features: readonly string[] = await read().catch(() => [])
  return { now: features.includes(feature) ? 'columns' : 'rows', isSettled: false }
}

/**
 * Sends a chunk in the form of the batch. If it is refused as one of another form, it is sent once more in the other
 * form: the refused one took no effect. So a run that is wrong about the form finds the right one, for example while
 * the queue still holds a job of an earlier run in the other form. If the second chunk is also refused as one of
 * another form, the first refusal is returned.
 *
 * A chunk that was on the queue twice may be done by one worker, and its repeat be refused by an older worker that doesn't
 * know the form. Then the chunk in the other form is refused as a repeat of other content, and the chunk is sent once more in
 * the first form: a worker that knows it answers from the receipt.
 */
export async function sendInForm(form: RecordForm, send: (form: BlockForm) => Promise<Result>): Promise<Result> {
  const first = form.now
  const result = await send(first)
  const other = first === 'rows' ? 'columns' : 'rows'
  const again = !form.isFixed && isOfOtherForm(result) ? await send(other) : undefined
  form.isSettled = true
  if (!again) return result
  if (!isOfOtherForm(again)) {
    form.now = other
    return again
  }
  if (!isOfOlderWorker(result) || !isRepeat(again)) return result
  const third = await send(first)
  return isOfOtherForm(third) ? result : third
}

const codeOf = ({ error }: Result, field: string) => error?.details?.[field]?.code

/** Whether a receipt has other content than the chunk: it was done in the other form, or is another chunk. */
function isRepeat(result: Result): boolean {
  return codeOf(result, 'body.jti') === 'jti_reused'
}

/** Whether a worker of an older release refused the chunk: it counted the lines, or doesn't know the member `columns`. */
function isOfOlderWorker(result: Result): boolean {
  return codeOf(result, 'body.request.block') === 'block_records' || codeOf(result, 'body.columns') === 'field_unknown'
}

/** Whether the refusal may be due to the form: the chunk was done in the other form, or the batch has the other form. */
function isOfOtherForm(result: Result): boolean {
  return isRepeat(result) || isOfOlderWorker(result) || codeOf(result, 'body.request.batch_id') === 'batch_layout'
}
