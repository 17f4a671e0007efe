// What an explanation reads of the store, so that the command and the console's page explain a job by the same functions.
// The command's reader (whole-reader.ts) reads everything; the console's reads what its person may see. What both ask the store
// stands in store-reader.ts. This file holds
// types only.

import type { BatchState } from '../../src/job/choices.ts'
import type { Batch } from '../../src/store/batch/batch-row.ts'
import type { Operation } from '../../src/store/job/operations.ts'
import type { Announcement } from '../../src/store/job/outbox.ts'
import type { Receipt } from '../../src/store/job/receipts.ts'
import type { SchemeIntent } from '../../src/store/provider/scheme-intents.ts'
import type { TokenRow } from '../../src/token/token.ts'
import type { FoundRecord } from './batch-line.ts'
import type { FailedFacts } from './failed-set.ts'

export interface KnownClient {
  clientId: string
  name: string
  /**
   * Whether its jobs without a receipt may be shown. Nobody has verified whose they are, so all entities of the client must
   * be the reader's.
   */
  isWhole: boolean
}

export type ReadReceipt = Pick<Receipt, 'receiptId' | 'clientId' | 'iss' | 'kind' | 'jti' | 'reference' | 'status'> &
  Pick<Receipt, 'code' | 'outcome' | 'refusal' | 'tokenId' | 'batchNo' | 'chunk' | 'counts' | 'reversal' | 'attempt'> &
  Pick<Receipt, 'acceptedAt' | 'completedAt'>

export type ReadToken = Pick<TokenRow, 'tokenId' | 'tokenScope' | 'tokenType' | 'status' | 'suspendedReason'> &
  Pick<TokenRow, 'createdAt' | 'updatedAt' | 'lastReceipt'> & {
    /** As senders know it. */
    name: string
  }

/** A row of the outbox that belongs to a job. */
export type ReadAnnouncement = Pick<Announcement, 'outboxId' | 'clientId' | 'replyTo' | 'resultId' | 'revision'> &
  Pick<Announcement, 'createdAt' | 'state'> & {
    /** What the text of an answer without a receipt says; undefined for other rows. */
    says?: { code: number; jti?: string; reasons: { field: string; reason: string; text: string }[] }
  }

export type ReadOperation = Pick<Operation, 'receiptId' | 'clientId' | 'kind' | 'jobId' | 'state' | 'acceptedAt'> &
  Pick<Operation, 'expiresAt' | 'completedAt'>

/** A call to a provider. `createdAt`, `updatedAt`: ms since the epoch. */
export type ReadCall = Pick<SchemeIntent, 'action' | 'state' | 'refusal' | 'reversal'> & {
  createdAt: number
  updatedAt: number
}

export interface JobReader {
  /** The clients whose jobs may be asked for. */
  clients(): Promise<readonly KnownClient[]>
  /** Receipts by id; missing ones are left out. */
  receipts(receiptIds: readonly string[]): Promise<ReadReceipt[]>
  /** Those of the ids that have a row in the outbox. */
  told(receiptIds: readonly string[]): Promise<string[]>
  /** All answers to one job, oldest first. */
  announcements(receiptId: string): Promise<ReadAnnouncement[]>
  /** What was accepted over HTTP to be answered later. */
  operation(receiptId: string): Promise<ReadOperation | undefined>
  /** The calls to providers of one job, oldest first. */
  calls(receiptId: string): Promise<ReadCall[]>
  /** The name of a token that a job was about. */
  tokenName(tokenId: string): Promise<string | undefined>
  /** A token by any of its names. */
  token(name: string): Promise<ReadToken | undefined>
  /** Ids of receipts of single jobs, newest first. */
  byReference(reference: string, limit: number): Promise<string[]>
  byToken(tokenId: string, limit: number): Promise<string[]>
  /** The batches with this id; several clients may use the same id. */
  batches(batchId: string): Promise<NamedBatch[]>
  /** Copies in the failed set by any of their names, oldest first. */
  failed(
    name: string,
    clientId: string | undefined,
  ): Promise<readonly Pick<FailedFacts, 'id' | 'code' | 'client' | 'jti'>[]>
  /** Looks for rows of files in the answers of chunks. Undefined: this reader may not read those. */
  rows?: RowReader
}

export type NamedBatch = Pick<Batch, 'batchNo' | 'batchId' | 'clientId'> & { state: BatchState }

export interface RowReader {
  /** The record at this line, or else with this reference. */
  find(batch: NamedBatch, name: string): Promise<FoundRecord | undefined>
  /** The record with this reference in the newest batches since `since` (ms), and how many of them were searched. */
  search(
    reference: string,
    options: { since: number; clientId: string | undefined },
  ): Promise<{ found: FoundRecord | undefined; searched: number; batches: number }>
}
