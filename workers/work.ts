// The types of the line: a job that is authenticated and well-formed, the handler of its kind, the handler's decision,
// and the end of an attempt.
import type { Refusal } from '../src/errors.ts'
import type { Succeeded } from '../src/job/answer/receipt-answer.ts'
import type { KindEntry } from '../src/job/catalogue.ts'
import type { ReasonCounts } from '../src/job/chunk-outcomes.ts'
import type { Asked } from '../src/job/envelope/digest.ts'
import type { Claims } from '../src/job/envelope/envelope.ts'
import type { Counts } from '../src/job/outcome.ts'
import type { ReceivedJob } from '../src/queue/engine.ts'
import type { Secret } from '../src/secret.ts'
import type { Client } from '../src/store/access/clients.ts'
import type { Receipt } from '../src/store/job/receipts.ts'
import { type Db, LostRace } from '../src/store/pool.ts'
import type { CardContent } from '../src/token/card.ts'
import type { ToldRecords } from './answer/result-text.ts'
import type { Deps } from './deps.ts'
import type { Effect } from './effect/effect.ts'

export interface Work<Request> {
  claims: Claims
  /** The entry of the job's kind. */
  entry: KindEntry
  request: Request
  /** The client on whose behalf the job is done: `client_id` in a system client's envelope, else `iss`. */
  client: Client
  /** The client whose results queue gets the answer. */
  addressee: string
  receiptId: string
  envelopeDigest: Buffer
  /** The kind as the envelope has it. `claims` of a malformed one have another, if this release doesn't know it. */
  signedKind: string
  /** What the envelope asks for, as it was signed; `NOT_UNDERSTOOD` until the request's form was checked. */
  asked: Asked
  block: string | undefined
  /** When the sender accepted the work, ms since the epoch; freshness and expiry of cards are decided by it. */
  acceptedAt: number
  /** When the job was put on its queue by the sender's clock, ms since the epoch. It isn't signed. */
  enqueuedAt: number
  /** The time of this attempt, ms since the epoch. */
  now: number
  attempt: number
  /** Somebody else has the key that signed the envelope. */
  isStolen: boolean
  /** The job was sent with a priority: jobs without one come first. */
  isBackground: boolean
  /** The revision of the job's receipt when this attempt looked it up; 0 if there was none; undefined before that. */
  foundRevision?: number
  /** What the job's cards say that were opened, by their encrypted text. Undefined: the text is no card. */
  contents?: Map<string, Secret<CardContent | undefined>>
  /** The id of the job's trace, if traces are on. */
  trace?: string
  /** Shows the job's progress in the queue. */
  progress?: ReceivedJob['progress']
}

/** An encrypted card of a request, and where its token is looked for. */
export interface AskedCard {
  encryptedCard: string
  alias: string
  tokenScope?: string
  id?: string
}

/** What a request says, by which one whose cards were encrypted again is recognised. */
export interface RequestContent {
  cards: readonly AskedCard[]
  /** `says`: what the card with this encrypted text says; undefined if it couldn't be opened. */
  textOf(says: (encryptedCard: string) => string | undefined): string
}

/** What happens to the job after an attempt. */
export type End =
  | { end: 'done'; outcome: 'SUCCEEDED' | 'FAILED' | 'DROPPED' | 'REPEATED' }
  | { end: 'later'; ms: number }

/** The answer to a job. */
export type JobAnswer = Refusal | Success | ChunkAnswer

/** What one attempt decided. */
export type Decision = EffectDecision | SavingDecision

/** A decision as a value that doesn't change any more. The line writes its effect together with the receipt. */
export interface EffectDecision {
  answer: JobAnswer
  effect: Effect
  /** Provider calls of the job must be compensated: the receipt says so, and a reversal is queued. */
  reversal?: 'REQUIRED'
  /** Runs after the commit; returns the answer with the record as it is then. Never throws. */
  after?(): Promise<JobAnswer>
}

/**
 * For a kind whose answer is known only inside the transaction: a chunk decides records there again that lost a race
 * for their card, a reversal needs another job's lock, a report takes over its file.
 */
export interface SavingDecision {
  /** Called again if the transaction is repeated. */
  save(db: Db): Promise<JobAnswer>
  /** Runs after the commit. Never throws. */
  saved?(answer: JobAnswer): void
}

/**
 * The job must come again later, because another job works on the same thing or a provider isn't ready. No attempt is
 * used up.
 */
export class Postponed extends Error {
  override name = 'Postponed'
  readonly ms: number

  constructor(ms: number) {
    super('not yet')
    this.ms = ms
  }
}

/** A lost race after which the prepared value is outdated: the line prepares it again. */
export class Outdated extends LostRace {
  override name = 'Outdated'
}

/** A decision that writes only its receipt. */
export function noEffect(answer: JobAnswer): EffectDecision {
  return { answer, effect: {} }
}

export interface Success extends Succeeded {
  outcome: string
  tokenId: string | null
}

export interface ChunkAnswer extends ToldRecords {
  /** The kind of the records, as metrics name it. */
  recordKind: string
  /** `null` for a dry run, which has no batch. */
  batchNo: number | null
  chunk: number
  counts: Counts
  /** Of these, the records that were decided as objects, not in columns; absent for a kind that knows no columns. */
  asObjects?: Counts
  reasons: ReasonCounts
  /** The outcomes in the form that the receipt stores. */
  packed: string
  /** A dry run leaves no receipt. */
  dryRun: boolean
}

/** Which records of a chunk an attempt works, by their indexes. */
export interface Selection {
  /** Records that are left out, because they make the chunk fail. */
  skipped: ReadonlySet<number>
  /** Only these records are tried, and nothing is stored. */
  probe?: { from: number; to: number }
}

/**
 * The part of the line that differs by kind. `open` may be missing if the kind reads nothing, `prepare` if it prepares
 * nothing: then the line does what is common to all. A kind that needs one of them doesn't compile without it.
 */
export type Handler<Request, Opened = undefined, Prepared = Request> = Deciding<Request, Prepared> &
  ([undefined] extends [Opened] ? Partial<Opening<Request, Opened>> : Opening<Request, Opened>) &
  ([Request] extends [Prepared] ? Partial<Preparing<Request, Opened, Prepared>> : Preparing<Request, Opened, Prepared>)

/** A handler with defaults for the missing functions. */
export type Complete<Request, Opened, Prepared> = Deciding<Request, Prepared> &
  Opening<Request, Opened> &
  Preparing<Request, Opened, Prepared>

const COMMON: Opening<unknown, unknown> & Preparing<unknown, unknown, unknown> = {
  open: async () => undefined,
  digestText: ({ asked }) => asked.text(),
  prepare: async ({ request }) => request,
}

export function complete(handler: Handler<unknown, unknown, unknown>): Complete<unknown, unknown, unknown> {
  return { ...COMMON, ...handler }
}

interface Opening<Request, Opened> {
  /** Reads what the digest of the request needs beside the request, such as the block of a chunk. */
  open(work: Work<Request>, deps: Deps): Promise<Opened | Refusal>
  /** Why the sender may not ask for what was opened; what the request itself needs is asked before. */
  permits?(work: Work<Request>, opened: Opened, deps: Deps): Refusal | undefined
  /** The text by which two requests count as the same; default: everything that was sent. */
  digestText(work: Work<Request>, opened: Opened): string
  /** What was opened says, for a kind whose requests have more than one card. */
  contentOf?(work: Work<Request>, opened: Opened): RequestContent
}

interface Preparing<Request, Opened, Prepared> {
  /** Does all cryptography and checks of form; default: returns the request as it is. */
  prepare(
    work: Work<Request>,
    opened: Opened,
    deps: Deps,
    previous: Receipt | undefined,
    selection: Selection,
  ): Promise<Prepared | Refusal>
}

/** A handler that makes a stored answer, for a kind with `from: 'handler'` in the catalogue. */
export interface Retells {
  /** The record of a succeeded job, from a table of the kind's own. */
  retell(receipt: Receipt, deps: Pick<Deps, 'store'>): Promise<Record<string, unknown>>
}

interface Deciding<Request, Prepared> extends Partial<Retells> {
  /** False: a host takes such jobs though its clock is off, because nothing is decided by it. Default: true. */
  goesByClock?: boolean
  /** For how long (ms) to delay the job before anything of it is opened; undefined: it may go on. */
  pauseOf?(work: Work<Request>, deps: Deps): Promise<number | undefined>
  /** Takes what a repeated job says beside its request, before it is answered from its receipt. */
  takeBeside?(work: Work<Request>, deps: Deps): Promise<void>
  /**
   * Calls providers or makes files, in recorded steps, for a job without a receipt. If it is called again, it continues
   * where it stopped. Throws `Postponed`.
   */
  reach?(
    work: Work<Request>,
    prepared: Prepared,
    deps: Deps,
    previous: Receipt | undefined,
  ): Promise<Prepared | Refusal>
  /** Reads rows and applies pure rules. It is called again after a lost race. */
  decide(work: Work<Request>, prepared: Prepared, deps: Deps): Promise<Decision>
  /** Retracts what was begun at providers, if the job ends without a receipt. */
  abandon?(work: Work<Request>, deps: Deps): Promise<void>
}

export function isChunk(answer: JobAnswer): answer is ChunkAnswer {
  return 'records' in answer
}
