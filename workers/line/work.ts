// The types of the line: a job that is authenticated and has its form, the handler of its kind, the handler's decision, and
// the end of an attempt. Nothing runs here.
import type { Refusal } from '../../src/errors.ts'
import type { ReasonCounts } from '../../src/job/chunk-outcomes.ts'
import { requestText } from '../../src/job/envelope/digest.ts'
import type { Claims } from '../../src/job/envelope/envelope.ts'
import type { Counts, RecordResult } from '../../src/job/outcome.ts'
import type { ReceivedJob } from '../../src/queue/engine.ts'
import type { Client } from '../../src/store/access/clients.ts'
import type { Receipt } from '../../src/store/job/receipts.ts'
import { type Db, LostRace } from '../../src/store/pool.ts'
import type { Deps } from '../deps.ts'
import type { Effect } from './effect.ts'

export interface Work<Request> {
  claims: Claims
  request: Request
  /** On whose behalf: `client_id` of a system client's envelope, else `iss`. */
  client: Client
  /** The client on whose results queue the answer goes. */
  addressee: string
  receiptId: string
  envelopeDigest: Buffer
  block: string | undefined
  /** ms since the epoch: when the sender accepted the work; freshness and expiry of cards are judged by it. */
  acceptedAt: number
  /** ms since the epoch: this attempt's now. */
  now: number
  attempt: number
  /** The revision of the job's receipt when this attempt looked for it, 0 where there was none; undefined until then. */
  foundRevision?: number
  /** The id of its trace, where traces are on. */
  trace?: string
  /** Shows in the queue how far the job is. */
  progress?: ReceivedJob['progress']
}

/** What becomes of the job after an attempt. */
export type End =
  | { end: 'done'; outcome: 'SUCCEEDED' | 'FAILED' | 'DROPPED' | 'REPEATED' }
  | { end: 'later'; ms: number }

/** What a job is answered. */
export type JobAnswer = Refusal | Success | ChunkAnswer

/** What one attempt decided. */
export type Decision = EffectDecision | SavingDecision

/** A value: nothing of it changes any more. The line writes the effect, and the receipt with it. */
export interface EffectDecision {
  answer: JobAnswer
  effect: Effect
  /** Something was done at a provider that isn't to stand: the receipt says so, and a reversal is queued. */
  reversal?: 'REQUIRED'
  /** Runs after the commit; the answer with the record as it is by then. Never throws. */
  after?(): Promise<JobAnswer>
}

/**
 * Of a kind whose answer is known only inside the transaction: a chunk decides records there that lost a race for their
 * card, a reversal needs another job's lock, a report takes over its file.
 */
export interface SavingDecision {
  /** Called again where its transaction is. */
  save(db: Db): Promise<JobAnswer>
  /** Runs after the commit. Never throws. */
  saved?(answer: JobAnswer): void
}

/** The job is to come again later: another job works on the same thing, or a provider isn't ready. No attempt is used up. */
export class Postponed extends Error {
  override name = 'Postponed'
  readonly ms: number

  constructor(ms: number) {
    super('not yet')
    this.ms = ms
  }
}

/** A lost race after which what was prepared no longer holds: the line prepares it anew. */
export class Outdated extends LostRace {
  override name = 'Outdated'
}

/** A decision that writes no more than its receipt. */
export function noEffect(answer: JobAnswer): EffectDecision {
  return { answer, effect: {} }
}

export interface Success {
  code: 200 | 204
  outcome: string
  tokenId: string | null
  record: Record<string, unknown>
}

export interface ChunkAnswer {
  /** What the records are, as metrics name them. */
  recordKind: string
  /** `null` for a dry run, which belongs to no batch. */
  batchNo: number | null
  chunk: number
  counts: Counts
  reasons: ReasonCounts
  records: RecordResult[]
  /** The outcomes as the receipt keeps them. */
  packed: string
  /** A dry run leaves no receipt. */
  dryRun: boolean
}

/** Which records of a chunk an attempt works, by index. */
export interface Selection {
  /** Left out: they make the chunk fail. */
  skipped: ReadonlySet<number>
  /** Only these are tried, and nothing is kept. */
  probe?: { from: number; to: number }
}

/**
 * A kind's own part of the line. `open` may be left out where it reads nothing, `prepare` where it prepares nothing:
 * then the line does what is common to all. A kind that needs one of them doesn't compile without it.
 */
export type Handler<Request, Opened = undefined, Prepared = Request> = Deciding<Request, Prepared> &
  ([undefined] extends [Opened] ? Partial<Opening<Request, Opened>> : Opening<Request, Opened>) &
  ([Request] extends [Prepared] ? Partial<Preparing<Request, Opened, Prepared>> : Preparing<Request, Opened, Prepared>)

/** A handler with all that it left out. */
export type Complete<Request, Opened, Prepared> = Deciding<Request, Prepared> &
  Opening<Request, Opened> &
  Preparing<Request, Opened, Prepared>

const COMMON: Opening<unknown, unknown> & Preparing<unknown, unknown, unknown> = {
  open: async () => undefined,
  digestText: ({ claims }) => requestText(claims.kind, claims.request),
  prepare: async ({ request }) => request,
}

export function complete(handler: Handler<unknown, unknown, unknown>): Complete<unknown, unknown, unknown> {
  return { ...COMMON, ...handler }
}

interface Opening<Request, Opened> {
  /** Reads what the request's digest needs; only a chunk with a block has that. */
  open(work: Work<Request>, deps: Deps): Promise<Opened | Refusal>
  /** By which two requests are the same; left out: all that was sent. */
  digestText(work: Work<Request>, opened: Opened): string
}

interface Preparing<Request, Opened, Prepared> {
  /** All cryptography and form; left out: the request as it is. */
  prepare(
    work: Work<Request>,
    opened: Opened,
    deps: Deps,
    previous: Receipt | undefined,
    selection: Selection,
  ): Promise<Prepared | Refusal>
}

/** A handler that makes a stored answer again, where the catalogue says `from: 'handler'`. */
export interface Retells {
  /** The record of one that succeeded, from a table of the kind's own. */
  retell(receipt: Receipt, deps: Pick<Deps, 'store'>): Promise<Record<string, unknown>>
}

interface Deciding<Request, Prepared> extends Partial<Retells> {
  /** How long (ms) to put the job off before anything of it is opened; undefined: it may go on. */
  pauseOf?(work: Work<Request>, deps: Deps): Promise<number | undefined>
  /**
   * Calls providers or makes files, in recorded steps, for a job that has no receipt yet; called again, it goes on where
   * it stopped. Throws `Postponed`.
   */
  reach?(
    work: Work<Request>,
    prepared: Prepared,
    deps: Deps,
    previous: Receipt | undefined,
  ): Promise<Prepared | Refusal>
  /** Reads rows and applies pure rules; it is called again after a lost race. */
  decide(work: Work<Request>, prepared: Prepared, deps: Deps): Promise<Decision>
  /** Takes back what was begun at providers, where the job ends without a receipt. */
  abandon?(work: Work<Request>, deps: Deps): Promise<void>
}

export function isChunk(answer: JobAnswer): answer is ChunkAnswer {
  return 'records' in answer
}
