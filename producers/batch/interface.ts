// What a program sees of a batch that it sends: a list of records in, a result of each out.
import type { z } from 'zod'
import type { RecordKind } from '../../src/job/choices.ts'
import type { RecordResult } from '../../src/job/outcome.ts'
import type { BlockForm } from '../../src/job/record-columns.ts'
import type { Policy } from '../../src/job/token-batch.ts'
import type { BatchRecord } from './records.ts'

export type { BatchRecord } from './records.ts'

/** How far a batch has come. A program stores it with the results, and goes on from it after a crash. */
export interface BatchCheckpoint {
  batchId: string
  /** When the batch began, seconds since the epoch. */
  acceptedAt: number
  /** How many records have their results. */
  records: number
  /** In how many pieces they were sent. */
  chunks: number
  form: BlockForm
}

export interface BatchOptions<Kind extends RecordKind = RecordKind> {
  /** What each record asks for. */
  kind: Kind
  /**
   * 1 to 56 letters, digits, `_` and `-`: the name of this list. The same list under the same name is the same batch: what was
   * done is answered again, and nothing is done twice.
   */
  batchId: string
  /** The scope of the tokens, for `token-create` only. Default: that of the client's file. */
  scope?: string | undefined
  policy?: z.input<typeof Policy> | undefined
  /** Predicts each outcome and changes nothing. */
  dryRun?: boolean | undefined
  /** Where the batch goes on, with the same list from its beginning. */
  checkpoint?: BatchCheckpoint | undefined
  /** Called when the caller has taken all results of a piece; the next piece's results wait for it. */
  onCheckpoint?: ((checkpoint: BatchCheckpoint) => Promise<void> | void) | undefined
  /** How many pieces may be sent and not yet taken. */
  inFlight?: number | undefined
  /** How long one piece may wait for its answer, in ms (600,000). */
  timeoutMs?: number | undefined
}

/** A record of the list and what became of it. `result.line` is its place in the list, from 1. */
export interface Ended<Record = BatchRecord> {
  record: Record
  result: RecordResult
}

export type SendBatch = <Kind extends RecordKind>(
  options: BatchOptions<Kind>,
  records: AsyncIterable<BatchRecord<Kind>> | Iterable<BatchRecord<Kind>>,
) => AsyncGenerator<Ended<BatchRecord<Kind>>, void, void>
