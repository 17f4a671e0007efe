// The sending half of a client: checks an ask, signs it, puts it on the queue of its kind, and repeats that while no
// result is found. The receiving half is producers/results.ts.

import { randomUUID } from 'node:crypto'
import type { Clock } from '../../src/clock.ts'
import { Fault, type FaultCode, isRefusal, type Refusal, refuse } from '../../src/errors.ts'
import type { Result } from '../../src/job/answer/result.ts'
import { envelopeDigest } from '../../src/job/envelope/digest.ts'
import { Optional, readCompact } from '../../src/job/envelope/envelope.ts'
import { receiptId } from '../../src/job/envelope/ids.ts'
import type { Logger } from '../../src/logger.ts'
import { heldUpBy, PRIORITY_MAX, type Queues } from '../../src/queue/engine.ts'
import { openPut } from '../../src/queue/put-jobs.ts'
import { every } from '../../src/recurring.ts'
import type { Ask } from '../ask.ts'
import { holdsCard, type Signed, signAsk } from '../envelope.ts'
import { type Asks, askOf, digestOf, isSequenced } from './asks.ts'
import type { Credentials } from './client-file.ts'
import { ClosedError, RefusedError } from './errors.ts'
import type { Handle, SubmitOptions } from './interface.ts'
import { type Claim, type Job, openJobs } from './jobs.ts'
import { openSemaphore } from './semaphore.ts'
import type { TrustedKeys } from './trusted-keys.ts'

export interface SendingDeps {
  /** The kinds that may be sent. */
  asks: Asks
  queues: Queues
  credentials: Credentials
  trusted: TrustedKeys
  replyTo: string | undefined
  /** Whether every reader of the results queue reads result sets. */
  resultSets: boolean
  clock: Clock
  log: Logger
}

export interface Sending {
  submit(kind: string, request: unknown, given: SubmitOptions): Promise<Handle>
  /** As `submit`, but only this caller gets the result, which isn't kept unless the same job is also submitted. */
  ask(
    kind: string,
    request: unknown,
    given: SubmitOptions,
    timeoutMs?: number,
  ): Promise<{ answer: Promise<Result>; forget(): void }>
  result(handle: Handle, timeoutMs: number): Promise<Result>
  /** Takes a result that was received. */
  resolve(result: Result): Claim
  /** Rejects every wait for a result. After that only jobs of `submit` are sent again. */
  rejectAll(error: Error): void
  /** The fault of a server by which workers hold up the oldest unanswered job. */
  heldUpBy(): Promise<FaultCode | undefined>
  /** Whether any job is unanswered, or any caller waits for a result. */
  isWaiting(): boolean
  /** Stops. Resolves when no more calls to the queues are in progress. */
  close(): Promise<void>
}

export interface SendingOptions {
  resendMs: number
  unansweredMax: number
}

const RESEND_CHECK_MS = 250
/** How many due jobs are sent again at once. */
const RESEND_AT_ONCE = 100
/** An envelope with more characters, or one with a block, goes to the queue by a call of its own. */
const TOGETHER_CHARS_MAX = 64 * 1024

const envelopeOf = ({ data }: Signed) => envelopeDigest(data.jws).toString('base64url')

/** The ask as it was signed: the caller may have changed its objects since. */
function askIn({ kind, signed }: Job): Ask {
  const request = readCompact(signed.data.jws)?.payload['request']
  return { kind, request: request as Ask['request'] }
}

/** Checked here, because a job with a wrong priority would fail all jobs that go to the queue with it. */
function isPriority(priority: number | undefined): boolean {
  return priority === undefined || (Number.isInteger(priority) && priority >= 0 && priority <= PRIORITY_MAX)
}

export function openSending(deps: SendingDeps, { resendMs, unansweredMax }: SendingOptions): Sending {
  const { asks, queues, credentials, trusted, replyTo, resultSets, clock, log } = deps
  const { clientId } = credentials.signingKey
  const unansweredLimit = openSemaphore(unansweredMax)
  const jobs = openJobs(resendMs, clock, unansweredLimit.release)
  let closed = false

  /** Checks and signs the job, and waits until one more job may be unanswered. */
  async function prepare(kind: string, request: unknown, given: SubmitOptions): Promise<Job> {
    if (closed) throw new ClosedError()
    const ask = askOf(asks, kind, request, given.block)
    if (isRefusal(ask)) throw new RefusedError(ask, clock())
    const jti = given.jti ?? randomUUID()
    const { reference, sequence, expiresInMs, priority } = given
    if (!isPriority(priority)) throw new RefusedError(refuse('field_range', 'body.priority'), clock())
    if (sequence !== undefined && !isSequenced(asks, ask))
      throw new RefusedError(refuse('sequence_not_allowed', 'body.sequence'), clock())
    // A malformed header is no reason to refuse the job, so it is dropped.
    const { data: traceparent } = Optional.shape.traceparent.safeParse(given.traceparent)
    const forms = { resultSets, resultColumns: resultSets && replyTo !== undefined && given.resultColumns }
    const signAt = (now: number) => {
      const optional = { traceparent, knowsKey: trusted.announced(clock()), ...forms }
      return signAsk(credentials, ask, { jti, reference, sequence, expiresInMs, replyTo, ...optional }, now)
    }
    const signed = await signAt(clock())
    if (isRefusal(signed)) throw new RefusedError(signed, clock())
    const envelope = envelopeOf(signed)
    const handle = { jti, receiptId: receiptId(clientId, jti), kind: ask.kind, answers: signed.answers, envelope }
    const job: Job = { handle, kind: ask.kind, signed, priority, envelopes: new Set([envelope]) }
    // Only a job without a lifetime set by the caller, and without a card, may be signed again for a new time. The
    // caller's lifetime must not grow, and the time of the first envelope decides whether a card is fresh.
    if (expiresInMs === undefined && !holdsCard(ask)) job.sign = () => signAt(clock())
    await unansweredLimit.acquire()
    return job
  }
  /**
   * Adds the job and begins to put it on its queue, or joins the same job if it is unanswered already: then both callers
   * fail if the queue doesn't take it. A job of other bytes with the same jti is sent after the end of the first if both have a
   * card: it may be the same one, encrypted again, so a worker decides. Throws for another job.
   */
  async function enter(job: Job, transient: boolean): Promise<Job> {
    for (;;) {
      if (closed) throw new ClosedError()
      const unanswered = jobs.join(job, { transient })
      if (!unanswered) {
        job.put = putFirst(job)
        job.put.catch(() => {}) // Whoever joins may come after the failure.
        return job
      }
      const [earlier, ask] = [askIn(unanswered), askIn(job)]
      const isSame = digestOf(asks, earlier) === digestOf(asks, ask)
      const mayBeSame = isSame || (holdsCard(earlier) && holdsCard(ask))
      if (isSame || !mayBeSame) unansweredLimit.release()
      if (isSame) return unanswered
      if (!mayBeSame) throw new RefusedError(refuse('jti_reused', 'body.jti'), clock())
      await unanswered.ended?.promise
    }
  }
  const putTogether = openPut(queues)
  const put = ({ kind, signed: { id, data }, priority = 0 }: Job) => {
    const isShort = data.block === undefined && data.jws.length <= TOGETHER_CHARS_MAX
    const job = { id, data, priority }
    return (isShort ? putTogether({ queue: kind, job }) : queues.add(kind, job)).catch(error => {
      throw error instanceof Fault ? error : new Fault('queue_away', error)
    })
  }

  async function putFirst(job: Job): Promise<void> {
    await put(job).catch(error => {
      jobs.drop(job)
      throw error
    })
  }

  /**
   * Sends due jobs again with the same id: the queue ignores a job that it still has, and accepts one that was lost.
   */
  async function resend(): Promise<void> {
    const due = jobs.due(clock())
    for (let from = 0; from < due.length && !closed; from += RESEND_AT_ONCE)
      await Promise.all(due.slice(from, from + RESEND_AT_ONCE).map(resendOne))
  }
  async function resendOne(job: Job): Promise<void> {
    try {
      const signed = await signAgain(job)
      if (signed && !isRefusal(signed)) {
        job.signed = signed
        job.envelopes.add(envelopeOf(signed))
      }
      await put(job)
    } catch (error) {
      log.warn({ jti: job.handle.jti, err: error }, 'an unanswered job could not be sent again; it will be')
    }
  }
  /** Undefined: the job goes again as it was signed. */
  async function signAgain(job: Job): Promise<Signed | Refusal | undefined> {
    return job.sign && job.signed.expiresAt - clock() < resendMs ? job.sign() : undefined
  }
  const stopResending = every(Math.min(Math.max(resendMs / 4, 10), RESEND_CHECK_MS), resend, { log })

  return {
    async submit(kind, request, given) {
      const job = await prepare(kind, request, given)
      const entered = await enter(job, false)
      await entered.put
      return entered.handle
    },
    async ask(kind, request, given, timeoutMs) {
      const job = await prepare(kind, request, given)
      const { put: isPut, handle } = await enter(job, true)
      // The wait begins before the queue confirms that it has the job: the result may come earlier.
      const { answer, leave } = jobs.wait(handle, timeoutMs)
      answer.catch(() => {}) // The caller may be gone by then.
      await isPut?.catch(error => {
        leave(error)
        throw error
      })
      return { answer, forget: () => leave(new Error('forgotten')) }
    },
    result: (handle, timeoutMs) => jobs.wait(handle, timeoutMs).answer,
    resolve: jobs.resolve,
    rejectAll: jobs.rejectAll,
    async heldUpBy() {
      const job = jobs.oldest()
      if (!job) return undefined
      // A server that refused something is asked by the job that it may have: then it ignores the repeat.
      if (queues.trouble()) await put(job).catch(() => {})
      const found = await queues.get(job.kind, job.signed.id).catch(() => undefined)
      return found && heldUpBy(found)
    },
    isWaiting: jobs.isWaiting,
    async close() {
      closed = true
      unansweredLimit.close()
      jobs.close()
      await stopResending()
    },
  }
}
