// The jobs that wait for their result: each is kept until its result is found on the results queue, and is sent again
// until then. Queues are handled elsewhere.
import type { Refusal } from '../../src/errors.ts'
import { isAbout, isAnswerTo, type Result } from '../../src/job/answer/result.ts'
import { reasonsIn } from '../../src/job/problem.ts'
import type { Signed } from '../envelope.ts'
import { ClosedError, UnansweredError } from './errors.ts'
import type { Handle } from './interface.ts'

export interface Job {
  handle: Handle
  kind: string
  signed: Signed
  priority?: number | undefined
  /** Signs the same request again, for a new time; undefined if only the caller may decide to do so. */
  sign?: () => Promise<Signed | Refusal>
  /** Settles when the queue has the job, or doesn't take it. */
  put?: Promise<unknown>
  /** All envelopes in which the job was sent, by digest: an answer to one of them is its answer. */
  envelopes: Set<string>
  /** Resolves when the job, once added, is answered or no longer sent. */
  ended?: PromiseWithResolvers<void>
}

/**
 * Whose a result is. `claimed`: a job of this client's, waiting or answered lately. `again`: it is only about an
 * envelope of such a job, not the job's answer: the answer to an envelope that this job wasn't sent in, or
 * `envelope_expired` of an older one. No caller needs it. The job still waits, and is sent again.
 * `unclaimed`: it answers no job of this client's.
 */
export type Claim = 'claimed' | 'again' | 'unclaimed'

type Waiter = PromiseWithResolvers<Result> & { handle: Handle }

/** A result that is kept, and the envelopes in which its job was sent. */
interface Kept {
  result: Result
  answers: string
  envelopes: ReadonlySet<string>
}

interface Entry {
  job?: Job
  /** When the job is due to be sent again, ms since the epoch. */
  dueAt: number
  /** How many times more the job becomes due soon after it was sent. */
  repeats: number
  waiters: Set<Waiter>
  /** Nobody will ask for the result later. */
  transient: boolean
}

export interface Jobs {
  /**
   * Adds `job`. If a job with the same receipt is unanswered, adds nothing and returns that job. `transient`: nobody
   * will ask for the result later.
   */
  join(job: Job, options: { transient: boolean }): Job | undefined
  /** Stops sending the job. */
  drop(job: Job): void
  /**
   * `answer` resolves with the job's result, at once or when it arrives; `leave` rejects it. A transient job for which
   * nobody else waits is then no longer sent.
   */
  wait(handle: Handle, timeoutMs?: number): { answer: Promise<Result>; leave(error: Error): void }
  /**
   * Takes a result that was received. If the job isn't waiting for an answer, the result replaces the kept one only if
   * its revision is higher. If it is waiting, a result of any revision answers it, unless the job goes again.
   */
  resolve(result: Result): Claim
  /**
   * Rejects every wait for a result. Transient jobs are dropped; the others are still sent, because somebody may ask
   * for their results later.
   */
  rejectAll(error: Error): void
  /** Whether any job is unanswered or any caller waits. */
  isWaiting(): boolean
  /** The job that has waited longest for its answer. */
  oldest(): Job | undefined
  /** The jobs that are due at `now`; each becomes due again `resendMs` later, or earlier after a result about its envelope. */
  due(now: number): Job[]
  close(): void
}

const RESULTS_MAX = 1_000
/**
 * A job is sent once more after this many ms if it was submitted again after its answer, or if a result was only about
 * its envelope.
 */
const REPEAT_MS = 250
/** A result about an envelope makes its job due so often, REPEAT_MS apart: the queue ignores the job while it still has the one to which the result belongs. */
const REPEATS = 4
const ANSWERED_MAX = 50_000

/** `onAnswered` is called once per job, when its first result is found or the job is dropped. */
export function openJobs(resendMs: number, clock: () => number, onAnswered: () => void): Jobs {
  const open = new Map<string, Entry>()
  const results = new Map<string, Kept>()
  // What was asked under the receipts whose result was found: repeats of these results belong to this client.
  const answered = new Map<string, string>()

  function entryOf(receiptId: string): Entry {
    const entry = open.get(receiptId) ?? { dueAt: 0, repeats: 0, waiters: new Set<Waiter>(), transient: true }
    open.set(receiptId, entry)
    return entry
  }
  function keep(receiptId: string, kept: Kept): void {
    results.delete(receiptId)
    results.set(receiptId, kept)
    trim(results, RESULTS_MAX)
  }
  /** The answer to a job that was found before: a later revision of it replaces it. */
  function isKnown(result: Result): boolean {
    const { receipt_id: receiptId, revision } = result
    const found = results.get(receiptId)
    const asked = answered.get(receiptId)
    if (!found || !isRevision(result, found)) return asked !== undefined && (result.answers ?? asked) === asked
    if (revision > found.result.revision) keep(receiptId, { ...found, result })
    return true
  }
  /** Whether the result is only about an envelope. If the job still waits for its answer, it becomes due soon. */
  function goesAgain(result: Result, entry: Entry | undefined): boolean {
    if (!entry?.job || (isOfEnvelope(result, entry.job) && !isOfOlderEnvelope(result, entry.job))) return false
    entry.dueAt = Math.min(entry.dueAt, clock() + REPEAT_MS)
    entry.repeats = REPEATS - 1
    return true
  }
  function giveUp(receiptId: string, entry: Entry, waiter: Waiter): void {
    entry.waiters.delete(waiter)
    if (!entry.job && entry.waiters.size === 0 && open.get(receiptId) === entry) open.delete(receiptId)
  }
  /** The job is answered, or no longer sent. */
  function end(entry: Entry): void {
    if (!entry.job) return
    entry.job.ended?.resolve()
    delete entry.job
    onAnswered()
  }
  function wait(handle: Handle, timeoutMs?: number): ReturnType<Jobs['wait']> {
    const { jti, receiptId } = handle
    const found = results.get(receiptId)
    if (found && isFor(found.result, handle, found.envelopes))
      return { answer: Promise.resolve(found.result), leave: () => {} }
    const entry = entryOf(receiptId)
    const waiter: Waiter = { ...Promise.withResolvers<Result>(), handle }
    entry.waiters.add(waiter)
    const leave = (error: Error) => {
      const isAlone = entry.transient && entry.waiters.size === 1 && entry.waiters.has(waiter)
      if (isAlone && open.get(receiptId) === entry) end(entry)
      giveUp(receiptId, entry, waiter)
      waiter.reject(error)
    }
    if (timeoutMs === undefined) return { answer: waiter.promise, leave }
    const timer = setTimeout(() => {
      giveUp(receiptId, entry, waiter)
      waiter.reject(new UnansweredError(jti, timeoutMs))
    }, timeoutMs)
    return { answer: waiter.promise.finally(() => clearTimeout(timer)), leave }
  }

  return {
    join(job, { transient }) {
      const entry = entryOf(job.handle.receiptId)
      entry.transient &&= transient
      if (entry.job) return entry.job
      entry.job = job
      job.ended = Promise.withResolvers<void>()
      // The answered job may still be on its way out of the queue, which then ignores the new job with the same id.
      entry.dueAt = clock() + (answered.has(job.handle.receiptId) ? Math.min(REPEAT_MS, resendMs) : resendMs)
      // The job is sent and answered again: an earlier result may not be the answer to this request.
      results.delete(job.handle.receiptId)
      return undefined
    },
    drop(job) {
      const { receiptId } = job.handle
      const entry = open.get(receiptId)
      if (entry?.job !== job) return
      end(entry)
      if (entry.waiters.size === 0) open.delete(receiptId)
    },
    wait,
    resolve(result) {
      const { receipt_id: receiptId } = result
      const entry = open.get(receiptId)
      if (goesAgain(result, entry)) return 'again'
      const { job, waiters = new Set<Waiter>() } = entry ?? {}
      const { envelopes } = job ?? {}
      const answers = [...waiters].filter(({ handle }) => isFor(result, handle, envelopes))
      const [handle] = [...(job ? [job.handle] : []), ...answers.map(waiter => waiter.handle)]
      if (!entry || !handle) return isKnown(result) ? 'claimed' : 'unclaimed'
      open.delete(receiptId)
      answered.delete(receiptId)
      answered.set(receiptId, handle.answers)
      trim(answered, ANSWERED_MAX)
      if (!(job && entry.transient))
        keep(receiptId, { result, answers: handle.answers, envelopes: envelopes ?? new Set([handle.envelope]) })
      for (const waiter of answers) waiter.resolve(result)
      const others = new Set([...waiters].filter(waiter => !answers.includes(waiter)))
      end(entry)
      if (others.size > 0) open.set(receiptId, { dueAt: 0, repeats: 0, waiters: others, transient: entry.transient })
      return 'claimed'
    },
    rejectAll(error) {
      for (const [receiptId, entry] of open) {
        for (const waiter of entry.waiters) waiter.reject(error)
        entry.waiters.clear()
        if (entry.job && !entry.transient) continue
        open.delete(receiptId)
        end(entry)
      }
    },
    isWaiting: () => open.size > 0,
    oldest() {
      for (const { job } of open.values()) if (job) return job
      return undefined
    },
    due(now) {
      const jobs: Job[] = []
      for (const entry of open.values()) {
        if (!entry.job || entry.dueAt > now) continue
        entry.dueAt = now + (entry.repeats > 0 ? Math.min(REPEAT_MS, resendMs) : resendMs)
        entry.repeats = Math.max(0, entry.repeats - 1)
        jobs.push(entry.job)
      }
      return jobs
    },
    close() {
      for (const { waiters, job } of open.values()) {
        for (const waiter of waiters) waiter.reject(new ClosedError())
        job?.ended?.resolve()
      }
      open.clear()
    },
  }
}

/**
 * Whether the result is about an older envelope of the same job, which expired on the queue and kept this one from
 * being queued.
 */
function isOfOlderEnvelope({ status, error, accepted_at: acceptedAt }: Result, { signed }: Job): boolean {
  const isExpired = reasonsIn(error).some(({ reason }) => reason === 'envelope_expired')
  return status === 'FAILED' && isExpired && Date.parse(acceptedAt) < signed.issuedAt
}

/** Whether the result answers an envelope of the job. Under its jti another one, or another job, may have been answered. */
function isOfEnvelope(result: Result, { handle, envelopes }: Job): boolean {
  return isAbout(result, handle) && envelopes.has(result.envelope ?? '')
}

/** Whether the result is the one that somebody waits for. `envelopes`: all those of the job that it answers, if it was sent here. */
function isFor(result: Result, handle: Handle, envelopes?: ReadonlySet<string>): boolean {
  return isAnswerTo(result, handle) || (isAbout(result, handle) && envelopes?.has(handle.envelope) === true)
}

/** Whether the result tells of the same receipt as a kept one. */
function isRevision({ kind, answers, envelope }: Result, kept: Kept): boolean {
  if (kind !== kept.result.kind) return false
  return answers === undefined ? kept.envelopes.has(envelope ?? '') : answers === kept.answers
}

/** Removes the oldest entry if there are more than `max`. */
function trim(kept: Map<string, unknown>, max: number): void {
  const [oldest] = kept.keys()
  if (kept.size > max && oldest !== undefined) kept.delete(oldest)
}
