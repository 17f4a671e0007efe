// Request and reply over queues: an HTTP request becomes a job, and the request waits for the job's answer. The job is
// sent again until it is answered or its deadline passes; after the deadline it is reversed. All state here is in
// memory: after a restart receipts and the store are enough.

import { createHash, randomUUID } from 'node:crypto'
import type { Clock } from '../../../src/clock.ts'
import { isRefusal, type Refusal, toFault } from '../../../src/errors.ts'
import type { Result } from '../../../src/job/answer/result.ts'
import { requestText } from '../../../src/job/envelope/digest.ts'
import type { SigningKey } from '../../../src/job/envelope/envelope.ts'
import { receiptId as receiptIdOf } from '../../../src/job/envelope/ids.ts'
import type { ReversalStatus } from '../../../src/job/problem.ts'
import type { Logger } from '../../../src/logger.ts'
import { settlesWithin } from '../../../src/queue/bounded-call.ts'
import type { Queues } from '../../../src/queue/engine.ts'
import { every } from '../../../src/recurring.ts'
import type { Troubles } from '../../../src/server-error.ts'
import type { Store } from '../../../src/store/pool.ts'
import { tryWrites } from '../../../src/store/server.ts'
import { type Span, within } from '../../../src/trace/tracer.ts'
import type { Operation } from '../../http/operation.ts'
import { openOwnMailbox } from '../../http/own-mailbox.ts'
import type { TrustedKeys } from '../../results.ts'
import type { Caller } from '../app.ts'
import type { GatewayMetrics } from '../metrics.ts'
import { openSign, type Sign } from './sign.ts'
import { openTimeoutReversals } from './timeout-reversal.ts'

/** How an operation ended, for its caller. */
export type End =
  | { end: 'answered'; result: Result }
  /** No answer came in time. */
  | { end: 'late'; reversalStatus: ReversalStatus }
  /** The operation wasn't begun, because too many are in progress. */
  | { end: 'busy' }
  /** The operation wasn't begun, because the request was refused before it was sent. */
  | { end: 'refused'; refusal: Refusal }

export interface RequestReply {
  /**
   * Sends a job and waits for its answer. Resolves at most a few seconds after the time-out, whatever happens to the
   * operation.
   */
  ask(caller: Caller, kind: string, request: Record<string, unknown>, options?: AskOptions): Promise<End>
  /**
   * Signs an envelope as `ask` does, for the caller's client. Its result comes to this process, unless `listens` is
   * false.
   */
  sign: Sign
  /** Whether a job with this receipt waits for its answer in this process. */
  isAsking(receiptId: string): boolean
  /** How long a write may take, ms. */
  timeoutMs: number
  /** The number of operations that wait for an answer, or for their reversal to be queued. */
  inFlight(): number
  /** Resolves when this process listens for answers. */
  ready: Promise<void>
  /** Gives up the operations that still wait: each is answered as late, and reversed. */
  giveUp(): void
  close(): Promise<void>
}

export interface AskOptions {
  /** The `jti` of the job; undefined: the job gets a new one. */
  idempotencyKey?: string | undefined
}

export interface RequestReplySettings {
  audience: string
  /** How long a write may take, ms. */
  timeoutMs: number
  /** How many operations may wait for their answer at once. */
  inFlightMax: number
}

export interface RequestReplyDeps {
  queues: Queues
  store: Store
  signingKey: SigningKey
  /** Whether workers do what `signingKey` signs. */
  isKeyLive: () => boolean
  trusted: TrustedKeys
  settings: RequestReplySettings
  clock: Clock
  metrics: GatewayMetrics
  log: Logger
}

const DELIVERIES = 50
/** How often the servers are asked while requests wait, in ms. */
const ASK_MS = 500

/** The operation in progress for one receipt, in this process. */
interface Entry {
  requestDigest: string
  operation?: Operation
  end: Promise<End>
}

export function openRequestReply(deps: RequestReplyDeps): RequestReply {
  const { queues, store, signingKey, isKeyLive, trusted, settings, clock, metrics, log } = deps
  const { timeoutMs, inFlightMax, audience } = settings
  const entries = new Map<string, Entry>()
  // Requests that wait for the end of another one under their key.
  let waiting = 0
  const mailbox = openOwnMailbox(
    {
      queues,
      clientId: signingKey.clientId,
      trusted,
      clock,
      log,
      // A worker would drop it, so it is given up as one that a server refuses.
      isRefused: () => !isKeyLive() || refuses(store.troubles, queues),
    },
    { letter: 'g', concurrency: DELIVERIES, receive },
  )
  const { replyTo } = mailbox
  // While somebody waits, it is asked whether both servers do what a job needs.
  const stopAsking = every(ASK_MS, async () => (entries.size > 0 ? askServers(store, queues) : undefined), { log })
  const sign = openSign({ audience, signingKey, replyTo, clock })
  const reversals = openTimeoutReversals({ queues, store, clock, log, sign })

  function receive(result: Result): void {
    reversals.resolve(result)
    entries.get(result.receipt_id)?.operation?.resolve(result)
  }

  async function run(caller: Caller, asked: Request, entry: Entry): Promise<End> {
    const { kind, receiptId } = asked
    const attributes = { 'job.kind': kind, 'job.receipt': receiptId }
    const span = caller.span?.child('await worker', { kind: 'producer', attributes })
    return within(
      span,
      async () => {
        const end = await runIn(span, caller, asked, entry)
        span?.set({ 'job.outcome': end.end })
        return end
      },
      error => toFault(error).code,
    )
  }
  /** Signs the job and begins to send it. */
  async function send({ caller, asked, span, deadline }: Sent, entry: Entry): Promise<Operation | Refusal> {
    const { kind, request, jti, receiptId } = asked
    const signed = await sign(caller, kind, request, { jti, expiresInMs: timeoutMs, span })
    if (isRefusal(signed)) return signed
    entry.operation = mailbox.send({ kind, receiptId, signed, deadline })
    return entry.operation
  }
  async function runIn(span: Span | undefined, caller: Caller, asked: Request, entry: Entry): Promise<End> {
    const { kind, receiptId } = asked
    const { begunAt } = asked
    const deadline = begunAt + timeoutMs
    // An earlier operation with this receipt was given up: its state is known only when its reversal is done.
    if (!(await reversals.awaitReversal(receiptId, deadline))) return { end: 'late', reversalStatus: 'REQUIRED' }
    const operation = await send({ caller, asked, span, deadline }, entry)
    if (isRefusal(operation)) return { end: 'refused', refusal: operation }
    const result = await operation.answer
    if (result) {
      metrics.waits.observe({ kind }, Math.max(0, Date.parse(result.completed_at) - begunAt) / 1000)
      metrics.answers.observe({ kind }, (clock() - begunAt) / 1000)
      return { end: 'answered', result }
    }
    const reversalStatus = await reversals.reverse(caller, operation, entry.requestDigest)
    metrics.timeouts.inc({ kind, reversal_status: reversalStatus })
    return { end: 'late', reversalStatus }
  }

  return {
    sign,
    ready: mailbox.ready,
    timeoutMs,
    inFlight: () => entries.size + waiting + reversals.pending(),
    giveUp: mailbox.giveUp,
    isAsking: receiptId => entries.has(receiptId),
    async ask(caller, kind, request, { idempotencyKey } = {}) {
      const jti = idempotencyKey ?? randomUUID()
      const receiptId = receiptIdOf(caller.client.clientId, jti)
      const digest = createHash('sha256').update(requestText(kind, request))
      // The answer to a caller for all entities isn't one for a caller who acts for one of them.
      const requestDigest = digest.update(caller.onlyEntity ?? '').digest('base64url')
      const begunAt = clock()
      // Other bytes may be the same card, encrypted again, so a worker decides. There is one envelope at a time.
      for (let known = entries.get(receiptId); known; known = entries.get(receiptId)) {
        if (known.requestDigest === requestDigest) return known.end
        if (mailbox.isGivenUp() || entries.size + waiting + reversals.pending() >= inFlightMax) return { end: 'busy' }
        waiting += 1
        const hasEnded = await settlesWithin(Math.max(0, begunAt + timeoutMs - clock()), known.end)
        waiting -= 1
        // This request was never sent.
        if (!hasEnded) return { end: 'late', reversalStatus: 'NONE' }
      }
      if (mailbox.isGivenUp() || entries.size + waiting + reversals.pending() >= inFlightMax) return { end: 'busy' }
      const entry: Entry = { requestDigest, end: Promise.resolve({ end: 'busy' }) }
      entries.set(receiptId, entry)
      entry.end = run(caller, { kind, request, jti, receiptId, begunAt }, entry).finally(() =>
        entries.delete(receiptId),
      )
      return entry.end
    },
    // The answers of reversals are named to go to the queue, so these are handed over before it is removed.
    async close() {
      await mailbox.close(reversals.close)
      await stopAsking()
    },
  }
}

/** Whether one of both refuses the small writes that try it. What refuses other work a worker finds out, and says. */
function refuses(troubles: Troubles, queues: Queues): boolean {
  return troubles.now()?.isProbed === true || queues.trouble()?.isProbed === true
}

/** Both note what they refuse, and what is over. */
async function askServers(store: Store, queues: Queues): Promise<void> {
  await Promise.allSettled([tryWrites(store), queues.ping()])
}

interface Request {
  kind: string
  request: Record<string, unknown>
  jti: string
  receiptId: string
  /** ms since the epoch. */
  begunAt: number
}

interface Sent {
  caller: Caller
  asked: Request
  span: Span | undefined
  /** ms since the epoch. */
  deadline: number
}
