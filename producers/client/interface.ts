// What a program that imports the library sees: what it asks with, and what it gets. Nothing here names a queue engine, a
// logging library or a key's class.
import type { FaultCode } from '../../src/errors.ts'
import type { Result, ResultEvent, SentJob } from '../../src/job/answer/result.ts'

export interface ClientOptions {
  /** `redis://` or `rediss://`; for a cluster several URLs, separated by commas. */
  redisUrl?: string
  /** The prefix of the queues' Redis keys; it must be the installation's (default `{tokenmill}`). */
  prefix?: string
  /** The path of the client's credentials file. */
  clientFile?: string
  /**
   * `[a-z0-9]{1,32}`: the name of a separate results queue for this process. If several processes call `result`, `call`
   * or `bulk`, each needs its own.
   */
  replyTo?: string | undefined
  /**
   * Whether several results may come in one delivery, which costs sender and workers less. Set it to true only if every
   * process that reads this results queue is of a release that knows such deliveries; an older reader would drop them.
   * Default: true with `replyTo`, because only this process reads that queue; else false.
   */
  resultSets?: boolean | undefined
  /** After this many ms without an answer a job is sent again (60,000). */
  resendMs?: number | undefined
  /** How many jobs may be unanswered at once; `submit` waits until there is room (10,000). */
  unansweredMax?: number
  /** How many deliveries are taken off the queue at once, and how many results are handled at once (50). */
  deliveries?: number
  /**
   * Called with one line for a person if it can't be found out whether the key is live. Default: a warning in the log.
   */
  tell?: (line: string) => void
}

/** The credentials of a client that has them elsewhere than in files. */
export interface GivenCredentials {
  /** The content of the client's file. Its names of other files aren't used. */
  file: Readonly<Record<string, unknown>>
  /** The private JWK. A client over HTTP whose `file` has an `api_key` needs none. */
  signingKey?: Readonly<Record<string, unknown>>
  /** The public JWK, and the armored OpenPGP key, to which the client encrypts. */
  captureKeys?: { jwe?: Readonly<Record<string, unknown>>; pgp?: string }
}

export type Delivery = Result | ResultEvent

/**
 * `unknown`: an event of a type that isn't known here, which is ignored. `unproved`: its key stayed unknown for 24 h; it is
 * in the queue's failed set.
 */
export type Acknowledged = 'taken' | 'forged' | 'unclaimed' | 'unknown' | 'unproved'

/**
 * Names a job that was sent, and what it asks for: only an answer to that is its result. A caller may store it, and another
 * process can later ask for the result with it.
 */
export interface Handle extends SentJob {
  jti: string
  receiptId: string
}

export interface SubmitOptions {
  /**
   * The idempotency key (jti). Set it if your own code may repeat the request, so that the request takes effect once.
   */
  jti?: string | undefined
  reference?: string | undefined
  sequence?: number | undefined
  expiresInMs?: number | undefined
  /** BullMQ's priority: a whole number from 0, which comes first and is the default, to 2,097,151. */
  priority?: number | undefined
  /** The encrypted records of a `token-batch` (token-batch.ts). */
  block?: string | undefined
  /**
   * The caller's `traceparent` (W3C Trace Context, version 00), whose trace the job joins. The installation decides
   * whether the trace is recorded.
   */
  traceparent?: string | undefined
  /**
   * For a `token-batch`: the result may tell of records in columns (`columns` of the result), which lack the records'
   * references. Only with a results queue of this process's own, and unless `resultSets` is false. A result may still
   * tell of all records in rows. And a result may come in columns although its caller didn't ask, if the same job was
   * asked for with it before: one with the same jti that still waits here or on the queue.
   */
  resultColumns?: boolean | undefined
}

export interface BulkItem {
  kind: string
  request: unknown
  block?: string | undefined
  jti?: string | undefined
  reference?: string | undefined
  sequence?: number | undefined
  traceparent?: string | undefined
}

/** An item and its result. */
export interface Answered<T extends BulkItem> {
  item: T
  result: Result
}

export interface BulkOptions {
  /** How many asks may be sent without the caller having received their results (1,000). */
  inFlight?: number
  /** BullMQ's priority: a whole number from 0, which comes first, to 2,097,151 (default 10). */
  priority?: number
}

/** A card with the field names of the interface. Months and years are numbers or texts. */
export interface CardToEncrypt {
  cardNumber: string
  expiryMonth?: number | string
  expiryYear?: number | string
  cardholderName?: string
  sequenceNumber?: number | string
  startMonth?: number | string
  startYear?: number | string
}

export interface EncryptedCard {
  encrypted_card: string
  public_key_alias: string
}

export interface Client {
  clientId: string
  /**
   * Sends a job. Resolves when the queue has the job. Rejects with `RefusedError` (not sent) or `Fault('queue_away')`
   * (perhaps sent: repeat it with the same jti).
   */
  submit(kind: string, request: unknown, options?: SubmitOptions): Promise<Handle>
  /**
   * Waits for a job's result; of several revisions it returns the highest one found. Rejects with `UnansweredError`
   * after `timeoutMs` (120,000). Like `call` and `bulk` it rejects with `KeyNotLiveError` if two lists of live keys in
   * a row lack this client's key; workers publish one every few seconds.
   */
  result(handle: Handle, options?: { timeoutMs?: number }): Promise<Result>
  /** `submit`, then `result`. */
  call(kind: string, request: unknown, options?: SubmitOptions & { timeoutMs?: number }): Promise<Result>
  /**
   * Calls `callback` with every result and event of this results queue, except events of a type that this release
   * doesn't know, and except the refusal of an envelope whose job this client sends again in another envelope. A delivery is acknowledged when `callback` resolves, and offered again if it rejects.
   */
  results(callback: (delivery: Delivery) => Promise<void> | void, options?: { concurrency?: number }): void
  /**
   * Sends all items. Yields each item with its result, in the order in which results arrive. An item that is refused
   * before it is sent has a result with `attempt` 0.
   */
  bulk<T extends BulkItem>(items: AsyncIterable<T> | Iterable<T>, options?: BulkOptions): AsyncIterable<Answered<T>>
  /**
   * Encrypts a card. The result holds `encrypted_card` and `public_key_alias` for a request, and is valid for 15
   * minutes. Rejects with `RefusedError` for a card with a `cvv`.
   */
  encryptCard(card: CardToEncrypt): Promise<EncryptedCard>
  /**
   * Encrypts to newer capture keys from now on. `document`: the answer of `GET /.well-known/capture-keys`, however it was
   * fetched. Rejects with `ConfigError`, and changes nothing, if a key in it isn't signed by a key of the installation
   * that this client trusts.
   */
  takeCaptureKeys(document: unknown): Promise<void>
  /**
   * Why workers don't answer the job that has waited longest: the fault of a server that holds it up; undefined for none. For
   * example `store_busy`, while the store has no room left.
   */
  heldUpBy(): Promise<FaultCode | undefined>
  /** How many deliveries were taken off the results queue, by the reason for which they were acknowledged. */
  counts(): Record<Acknowledged, number>
  /** Stops listening and sending. Unanswered jobs stay on the queue. */
  close(): Promise<void>
}
