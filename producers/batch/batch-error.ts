// The errors that end a batch. What was answered before stays done; the batch can go on from its last checkpoint.
import { textOf } from '../../src/errors.ts'
import type { Result } from '../../src/job/answer/result.ts'
import { reasonIn } from '../../src/job/problem.ts'

export class BatchError extends Error {
  override name = 'BatchError'
  /** The code of the refusal; undefined if none was answered. */
  readonly reason: string | undefined

  constructor(message: string, reason?: string) {
    super(message)
    this.reason = reason
  }
}

const NEXT: Readonly<Record<string, string>> = {
  batch_extent: 'Another list was begun under this batchId: choose another.',
  batch_finished: 'Another list was sent under this batchId: choose another.',
  batch_layout: 'Send it with the kind, scope and policy it was begun with, or under another batchId.',
  batch_too_old: 'Its receipts are gone: send the list under another batchId.',
  jti_reused: 'Another list was sent under this batchId: choose another.',
  alias_unknown: 'Ask the operator for the capture key of your entity, and name it in the client’s file.',
  role_missing: 'Ask the operator for the role.',
  entity_forbidden: 'The client does not act for this entity: ask the operator.',
}

/** For a piece of a batch that was refused as a whole. */
export function refusedChunk(number: number, { error }: Result): BatchError {
  const wrong = reasonIn(error)
  const next = NEXT[wrong.reason] ?? 'Correct that, and go on from the last checkpoint.'
  return new BatchError(`chunk ${number} was refused: ${wrong.field}: ${textOf(wrong)} ${next}`, wrong.reason)
}

/** For a list that isn't the one of the checkpoint. */
export function otherList(records: number): BatchError {
  return new BatchError(
    `the list isn't the one of the checkpoint, in which ${records} records have their results: send the same list from its beginning, or start without the checkpoint`,
  )
}
