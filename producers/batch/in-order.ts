// Sends the pieces of a list, a few of them at once, and yields the results of their records in the order of the list. It goes
// on from a checkpoint, and tells the next one when the caller has taken all results of a piece.
import type { BlockForm } from '../../src/job/record-columns.ts'
import { openWindow } from '../client/window.ts'
import { BatchError, otherList } from './batch-error.ts'
import type { BatchCheckpoint, BatchOptions, Ended } from './interface.ts'
import { touchedBy } from './order.ts'

/** What is sent at once. The same list always gives the same pieces. */
export interface Piece<Record> {
  /** From 0. */
  position: number
  /** How many records of the list are before it. */
  before: number
  records: Record[]
}

interface Steps<Record, P extends Piece<Record>, Answer> {
  inFlight: number
  /** The requests of a piece. */
  requestsOf(piece: P): Iterable<object>
  send(piece: P): Promise<Answer>
  /** The results of a piece, each with its record. Throws if the batch must end. */
  endedOf(piece: P, answer: Answer): Ended<Record>[]
  /** Seconds since the epoch. */
  acceptedAt: number
  /** The form in which pieces are sent now. */
  form(): BlockForm
}

export async function* sendInOrder<Record, P extends Piece<Record>, Answer>(
  pieces: AsyncIterable<P>,
  options: Pick<BatchOptions, 'kind' | 'policy' | 'batchId' | 'checkpoint' | 'onCheckpoint'>,
  { inFlight, requestsOf, send, endedOf, acceptedAt, form }: Steps<Record, P, Answer>,
): AsyncGenerator<Ended<Record>, void, void> {
  const { batchId, checkpoint, onCheckpoint } = options
  const touched = touchedBy(options)
  if (checkpoint && checkpoint.batchId !== batchId)
    throw new BatchError(`the checkpoint is of the batch ${checkpoint.batchId}, not of ${batchId}`)
  const done = { records: checkpoint?.records ?? 0, chunks: checkpoint?.chunks ?? 0 }
  const written: { ended: Ended<Record>[]; chunks: number }[] = []
  const window = openWindow<P, Answer, { ended: Ended<Record>[]; chunks: number }>({
    limits: () => ({ unanswered: inFlight, unwritten: inFlight }),
    waiting: undefined,
    touched: touched && (piece => touched(requestsOf(piece))),
    endOf: (piece, answer) => ({ ended: endedOf(piece, answer), chunks: piece.position + 1 }),
    async write(end) {
      written.push(end)
    },
  })
  async function* taken(): AsyncGenerator<Ended<Record>, void, void> {
    for (let end = written.shift(); end; end = written.shift()) {
      yield* end.ended
      done.records += end.ended.length
      done.chunks = end.chunks
      await onCheckpoint?.({ batchId, acceptedAt, ...done, form: form() })
    }
  }
  for await (const piece of pieces) {
    if (isDone(piece, checkpoint)) continue
    await window.room(piece)
    yield* taken()
    const answer = send(piece)
    answer.catch(() => {}) // The window tells of it in its turn.
    window.push(piece, answer)
  }
  await window.drain()
  yield* taken()
}

/** Whether the results of a piece were taken before. Throws for another list than that of the checkpoint. */
function isDone({ position, before }: Piece<unknown>, checkpoint: BatchCheckpoint | undefined): boolean {
  if (!checkpoint) return false
  if (position === checkpoint.chunks && before !== checkpoint.records) throw otherList(checkpoint.records)
  return position < checkpoint.chunks
}
