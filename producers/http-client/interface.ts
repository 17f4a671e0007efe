// What a program sees of a client over HTTP. Requests and answers are typed by the schemas that the gateway checks with.
import type { z } from 'zod'
import type { RecordResult } from '../../src/job/outcome.ts'
import type { SendBatch } from '../batch/interface.ts'
import type { CardToEncrypt, GivenCredentials } from '../client/interface.ts'
import type { Accepted, BatchQuery, BatchStatus } from '../http/messages/batches.ts'
import type { GetRecord, GoneRecord, Operation, Patch, PatchRecord, Put, PutRecord } from '../http/messages/cards.ts'
import type { Absent, Added, Found, Lookup, Reference } from '../http/messages/references.ts'
import type { ReportOrder, ReportRecord } from '../http/messages/reports.ts'

export interface HttpOptions {
  /** Where the gateway is: `https://vault.example`. Default: `base_url` of the client's file. */
  baseUrl?: string
  /** The path of the client's file. Without it, set `credentials`. */
  clientFile?: string
  credentials?: GivenCredentials
  /** How long an answer is awaited, repeats among them, in ms (120,000). */
  timeoutMs?: number
  /** In place of the `fetch` of Node: through a proxy, for example. */
  fetch?: typeof fetch
}

type CardFields = 'encrypted_card' | 'public_key_alias'
/** A card in clear, which is encrypted here, or one that is encrypted already. */
type EitherCard<Body> = Pick<Body, CardFields & keyof Body> | { card: CardToEncrypt }

type PutBody = z.input<typeof Put>
type PatchBody = z.input<typeof Patch>

/** `token_scope`: default that of the client's file. */
export type CreateToken = Omit<PutBody, CardFields | 'token_scope'> & { token_scope?: string } & EitherCard<PutBody>
export type UpdateToken = Omit<PatchBody, CardFields> & EitherCard<PatchBody>

export type CreatedToken = z.infer<typeof PutRecord | typeof GoneRecord>
export type Token = z.infer<typeof GetRecord>
export type UpdatedToken = z.infer<typeof PatchRecord | typeof GoneRecord>
export type OperationRecord = z.infer<typeof Operation>

export type Owner = z.infer<typeof Reference>
export type PutOwner = z.input<typeof Reference>
export type AddedOwner = z.infer<typeof Added | typeof GoneRecord>
export type LookUp = z.input<typeof Lookup>
export type LocatedOwner = z.infer<typeof Found | typeof Absent>

export type SubmitBatch = z.input<typeof BatchQuery> & ReadOptions & { format?: 'ndjson' | 'csv' }
/** Rows as one text, or a function that opens them; it is called again if the request is repeated. */
export type BatchBody = string | Uint8Array | (() => AsyncIterable<string | Uint8Array>)
export type AcceptedBatch = z.infer<typeof Accepted>
export type BatchState = BatchStatus
export type BatchRow = RecordResult

export type OrderReport = z.input<typeof ReportOrder>
export type Report = ReportRecord

export interface ReadOptions {
  timeoutMs?: number | undefined
}

export interface WriteOptions extends ReadOptions {
  /**
   * 1 to 128 printable ASCII characters. A write takes effect once under its key: set it if your own code may repeat the
   * request. Default: a new one for each call.
   */
  idempotencyKey?: string | undefined
  /**
   * The gateway stores the request and answers at once; the client asks until it has ended. For writes that wait long for a
   * network or a busy worker.
   */
  respondAsync?: boolean | undefined
  /** With `respondAsync`: called with the id for `operation` and `operationEnd`, for a process that goes on elsewhere. */
  onAccepted?: ((receiptId: string) => void) | undefined
}

/**
 * All methods reject with `HttpError` if the answer isn't a success, with `NoAnswerError` if there is none in time, with
 * `ClosedError` after `close`.
 */
export interface HttpClient {
  baseUrl: string
  /** Rejects with `RefusedError` for a card with a `cvv`. */
  createToken(request: CreateToken, options?: WriteOptions): Promise<CreatedToken>
  getToken(id: string, options?: ReadOptions): Promise<Token>
  updateToken(id: string, request: UpdateToken, options?: WriteOptions): Promise<UpdatedToken>
  suspendToken(id: string, options?: WriteOptions): Promise<void>
  activateToken(id: string, options?: WriteOptions): Promise<void>
  /** For good. */
  deleteToken(id: string, options?: WriteOptions): Promise<void>

  putOwner(id: string, owner: PutOwner, options?: WriteOptions): Promise<AddedOwner>
  /** The owners of the token's card, oldest first. */
  owners(id: string, options?: ReadOptions): AsyncIterable<Owner>
  /** In the order of the request, at most 1,000 at once. */
  lookUpOwners(request: LookUp, options?: ReadOptions): Promise<LocatedOwner[]>

  operation(receiptId: string, options?: ReadOptions): Promise<OperationRecord>
  /** Asks until the operation has ended. Rejects with the `HttpError` that the write would have been answered with. */
  operationEnd(receiptId: string, options?: ReadOptions): Promise<OperationRecord>

  /**
   * Sends a list and yields the result of each record in the order of the list. The list isn't held: a few parts of it are
   * in flight. Its card numbers go over the wire in clear: use TLS. Rejects with `BatchError` for what can't be said over HTTP:
   * owners, third parties, source times.
   */
  batch: SendBatch

  /** Sends the rows of a batch; a repeat under the same `batch_id` is the same batch. They hold card numbers in clear: use TLS. */
  submitBatch(rows: BatchBody, options: SubmitBatch): Promise<AcceptedBatch>
  batchState(batchId: string, options?: ReadOptions): Promise<BatchState>
  /** Asks until every row has its outcome. `onProgress`: called with each state. Waits as long as it takes without `timeoutMs`. */
  batchEnd(batchId: string, options?: ReadOptions & { onProgress?: (batch: BatchState) => void }): Promise<BatchState>
  /** The results of a finished batch, a row each, in the order of its rows. */
  batchResults(batchId: string, options?: ReadOptions): AsyncIterable<BatchRow>
  /** Cancels what of the batch hasn't started. */
  cancelBatch(batchId: string, options?: ReadOptions): Promise<void>

  orderReport(order: OrderReport, options?: Omit<WriteOptions, 'respondAsync' | 'onAccepted'>): Promise<Report>
  /**
   * The file of a report, once it is made. The bytes are checked: the stream ends with an error if they aren't the file's.
   * Waits as long as it takes without `timeoutMs`.
   */
  reportFile(reportUid: string, options?: ReadOptions): Promise<ReadableStream<Uint8Array>>

  /** Ends every call that is under way. */
  close(): void
}
